//! A server whose state lasts: a journal for the objects, a file for the key that signs tokens.

use crate::builder::{ApiServer, Builder};
use crate::files::write_private;
use crate::object::{self, Header};
use crate::server::Lasting;
use bytes::Bytes;
use orlop_journal::{Disk, Keep, OpenError};
use std::future::Future;
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
        let object = object::parse(body)?;
        let (again, header) = object::encode(&object, mark);
        // The header knows where the head and the metadata end; so they must stand where it says.
        let end = header.metadata_end as usize;
        (again.get(..end) == body.get(..end)).then_some(header)
    }
}

impl Lasting for Disk<Header> {
    fn settled(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async move { Disk::settled(self).await.map_err(|broken| broken.to_string()) })
    }
}

impl Builder {
    /// Makes the server with the state that `directory` holds, and keeps it there: what was acknowledged is there
    /// after a crash. A new directory begins as a new cluster.
    pub fn open(mut self, directory: &Path) -> Result<ApiServer, OpenError> {
        let (disk, state) = Disk::open(directory)?;
        let path = directory.join(KEY_FILE);
        let key = signing_key(&path)?;
        if !crate::auth::is_signing_key(&key) {
            return Err(OpenError::Damaged { path, at: 0 });
        }
        self.signing_key = Some(key);
        Ok(self.build_from(Some((Arc::new(disk), state))))
    }
}

/// The key in a file, which is made if it is missing.
fn signing_key(path: &Path) -> Result<Vec<u8>, OpenError> {
    let cannot = |source| OpenError::Io { path: path.to_owned(), source };
    match std::fs::read(path) {
        Ok(key) => Ok(key),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(cannot(error)),
        Err(_) => {
            let key = crate::auth::new_signing_key();
            write_private(path, &key).map_err(cannot)?;
            Ok(key)
        }
    }
}
