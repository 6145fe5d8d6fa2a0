//! A server whose state lasts: a journal for the objects, a file for the key that signs tokens.

use crate::builder::{ApiServer, Builder};
use crate::object::{self, Header};
use crate::server::Lasting;
use bytes::Bytes;
use orlop_journal::{Disk, Keep, OpenError};
use orlop_store::Revision;
use serde_json::Value;
use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

/// The file with the key that signs service account tokens.
const KEY_FILE: &str = "service-accounts.key";

impl Keep for Header {
    fn mark(&self) -> u64 {
        self.schema
    }

    fn restore(body: &Bytes, mark: u64) -> Option<Self> {
        let object: Value = serde_json::from_slice(body).ok()?;
        let (again, header) = object::encode(&object, mark);
        (again == body).then_some(header)
    }
}

impl Lasting for Disk<Header> {
    fn settled(&self, revision: Revision) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async move { Disk::settled(self, revision).await.map_err(|broken| broken.to_string()) })
    }
}

impl Builder {
    /// Makes the server with the state that `directory` holds, and keeps it there: what was acknowledged is there
    /// after a crash. A new directory begins as a new cluster.
    pub fn open(mut self, directory: &Path) -> Result<ApiServer, OpenError> {
        let (disk, state) = Disk::open(directory)?;
        self.signing_key = Some(signing_key(&directory.join(KEY_FILE))?);
        Ok(self.build_from(Some((Arc::new(disk), state))))
    }
}

/// The key in a file, which is made if it is missing.
fn signing_key(path: &Path) -> Result<Vec<u8>, OpenError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let cannot = |source| OpenError::Io { path: path.to_owned(), source };
    match std::fs::read(path) {
        Ok(key) => return Ok(key),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(cannot(error)),
        Err(_) => {}
    }
    let key = crate::auth::new_signing_key();
    let draft = path.with_extension("draft");
    let mut file = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .map_err(cannot)?;
    file.write_all(&key).and_then(|()| file.sync_all()).map_err(cannot)?;
    std::fs::rename(&draft, path).map_err(cannot)?;
    Ok(key)
}
