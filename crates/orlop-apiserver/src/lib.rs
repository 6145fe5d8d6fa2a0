#![doc = include_str!("../README.md")]

mod admission;
mod auth;
mod body;
mod bootstrap;
mod builder;
mod crd;
mod discovery;
mod dump;
mod fields;
mod files;
mod health;
mod kind;
mod kubeconfig;
mod metrics;
mod negotiate;
mod object;
mod openapi;
mod options;
mod outbound;
#[cfg(feature = "persistence")]
mod persist;
mod rest;
mod route;
mod rules;
mod selector;
mod serve;
mod server;
mod service;
mod services;
mod status;
mod turns;
mod yaml;

pub use admission::PLUGINS as ADMISSION_PLUGINS;
pub use auth::{Access, Recorder, User, random_token};
pub use body::Body;
pub use builder::{ApiServer, Builder, NotKept, Snapshot};
pub use dump::LoadError;
#[cfg(feature = "persistence")]
pub use orlop_journal::OpenError;
pub use orlop_store::Limits;
pub use outbound::{NotAServiceName, ServiceName};
pub use serve::{Certificates, ServeError, Serving};
pub use service::{ApiService, BODY_BYTES_MAX};
