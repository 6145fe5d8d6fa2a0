//! One test per session.

use crate::session::play;

macro_rules! sessions {
    ($($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn $name() {
            play(stringify!($name)).await;
        }
    )*};
}

sessions! { access apply crd crud discovery generators patch server_side_apply tables workloads }
