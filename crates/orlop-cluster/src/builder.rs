//! How a cluster is made.

use crate::cluster::Cluster;
use orlop_apiserver::{ApiServer, User, random_token};
use orlop_clock::{Clock, Rng};

/// Choices for a new cluster.
#[must_use]
pub struct Builder {
    server: orlop_apiserver::Builder,
    clock: Clock,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self { server: ApiServer::builder(), clock: Clock::system() }
    }

    /// The clock that everything in the cluster goes by.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }

    /// The source of uids and generated names; with a seed, a run can be repeated.
    pub fn rng(mut self, rng: Rng) -> Self {
        self.server = self.server.rng(rng);
        self
    }

    /// Further choices for the API server: recorder, tokens, admission, limits.
    pub fn server(
        mut self,
        choose: impl FnOnce(orlop_apiserver::Builder) -> orlop_apiserver::Builder,
    ) -> Self {
        self.server = choose(self.server);
        self
    }

    /// Makes the cluster, with what a new one holds.
    pub fn start(self) -> Cluster {
        // Never from the given source: a token must not be guessed by whoever knows the seed.
        let token = random_token();
        let server = self.server.clock(self.clock.clone()).token(&token, User::admin()).build();
        Cluster::new(server, self.clock, token)
    }
}
