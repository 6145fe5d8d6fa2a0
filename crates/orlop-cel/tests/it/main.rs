//! The environment from outside: expressions, rules and policies as the server uses them.

mod admission;
mod corpus;
mod functions;
mod properties;
mod vectors;
