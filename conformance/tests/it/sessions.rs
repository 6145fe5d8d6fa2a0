//! One test per session.

use crate::program::{HELM_3, HELM_4};
use crate::session::{play, play_with};

macro_rules! sessions {
    ($($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn $name() {
            play(stringify!($name)).await;
        }
    )*};
}

sessions! { access apply commands crd crud discovery generators patch server_side_apply tables workloads }

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn helm_4() {
    let Some(helm) = HELM_4.get("helm_4") else { return };
    play_with("helm_4", Some(helm)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn helm_3() {
    let Some(helm) = HELM_3.get("helm_3") else { return };
    play_with("helm_3", Some(helm)).await;
}
