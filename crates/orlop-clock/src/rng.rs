//! The random source: one seed gives one sequence.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// Letters of generated names: no vowels and no look-alikes, so that no words arise.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A random source. Cheap to clone; clones draw from the same sequence.
#[derive(Clone, Debug)]
pub struct Rng(Arc<Mutex<ChaCha8Rng>>);

impl Rng {
    /// The sequence that belongs to `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(seed))))
    }

    /// A sequence that differs in each process and each call. Not for secrets.
    pub fn unseeded() -> Self {
        let random = RandomState::new();
        let mut seed = [0; 32];
        for (n, chunk) in seed.chunks_exact_mut(8).enumerate() {
            chunk.copy_from_slice(&random.hash_one(n).to_le_bytes());
        }
        Self(Arc::new(Mutex::new(ChaCha8Rng::from_seed(seed))))
    }

    /// A number below `bound`, or 0 if `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        self.draw(|rng| rng.next_u64()).checked_rem(bound).unwrap_or(0)
    }

    /// Fills a buffer.
    pub fn fill(&self, bytes: &mut [u8]) {
        self.draw(|rng| rng.fill_bytes(bytes));
    }

    /// A version 4 UUID in its usual spelling.
    pub fn uuid(&self) -> String {
        let mut b = [0_u8; 16];
        self.fill(&mut b);
        b[6] = (b[6] & 0x0f) | 0x40;
        b[8] = (b[8] & 0x3f) | 0x80;
        let hex: String = b.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// A suffix for a generated name, as Kubernetes makes them.
    pub fn name_suffix(&self, letters: usize) -> String {
        (0..letters)
            .map(|_| char::from(NAME_LETTERS[self.below(NAME_LETTERS.len() as u64) as usize]))
            .collect()
    }

    fn draw<T>(&self, with: impl FnOnce(&mut ChaCha8Rng) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let (a, b) = (Rng::seeded(7), Rng::seeded(7));
        assert_eq!(a.uuid(), b.uuid());
        assert_eq!(a.name_suffix(5), b.name_suffix(5));
        assert_ne!(a.uuid(), Rng::seeded(8).uuid());
        assert_ne!(Rng::unseeded().uuid(), Rng::unseeded().uuid());
    }

    #[test]
    fn a_uuid_is_version_4() {
        let id = Rng::seeded(1).uuid();
        assert_eq!(id.len(), 36);
        assert_eq!(&id[14..15], "4");
    }

    #[test]
    fn below_nothing_is_zero() {
        assert_eq!(Rng::seeded(1).below(0), 0);
    }
}
