//! Signed tokens: JSON web tokens with an ECDSA key that lives as long as the server.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde_json::{Value, json};
use std::sync::OnceLock;

/// The longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// A bearer token that cannot be guessed.
pub fn random_token() -> String {
    let mut bytes = [0; 32];
    let filled = ring::rand::SecureRandom::fill(&SystemRandom::new(), &mut bytes);
    filled.expect("the system gives random numbers");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A new key for [`Signer::of`], in PKCS #8.
pub(crate) fn new_signing_key() -> Vec<u8> {
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    document.expect("the system gives random numbers").as_ref().to_vec()
}

/// Whether bytes are a key for [`Signer::of`].
#[cfg(feature = "persistence")]
pub(crate) fn is_signing_key(key: &[u8]) -> bool {
    Signer::of(key).is_some()
}

/// Signs and verifies. Unless it is given, the key is made when it is first needed.
#[derive(Default)]
pub(super) struct Signer(OnceLock<EcdsaKeyPair>);

impl Signer {
    /// A signer with a key, unless the key is none.
    pub(super) fn of(key: &[u8]) -> Option<Self> {
        let key =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key, &SystemRandom::new()).ok()?;
        Some(Self(OnceLock::from(key)))
    }

    fn key(&self) -> &EcdsaKeyPair {
        self.0.get_or_init(|| {
            let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
            EcdsaKeyPair::from_pkcs8(algorithm, &new_signing_key(), &random)
                .expect("a key just made can be read")
        })
    }

    fn id(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.key().public_key().as_ref());
        URL_SAFE_NO_PAD.encode(digest)
    }

    /// A token with these claims.
    pub(super) fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": "ES256", "kid": self.id()});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = self
            .key()
            .sign(&SystemRandom::new(), signed.as_bytes())
            .expect("the system gives random numbers");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// The claims of a token that this server signed.
    pub(super) fn verify(&self, token: &str) -> Option<Value> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Value = serde_json::from_slice(&decode(header)?).ok()?;
        if header["alg"] != "ES256" || header["kid"] != self.id() {
            return None;
        }
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key().public_key().as_ref());
        key.verify(signed.as_bytes(), &decode(signature)?).ok()?;
        serde_json::from_slice(&decode(claims)?).ok()
    }

    /// The public key, as others read it to verify tokens.
    pub(super) fn jwks(&self) -> Value {
        let point = self.key().public_key().as_ref();
        let coordinate = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&point[range]);
        json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": self.id(), "crv": "P-256", "alg": "ES256",
            "x": coordinate(1..33), "y": coordinate(33..65),
        }]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_tokens_are_believed() {
        let (mine, other) = (Signer::default(), Signer::default());
        let token = mine.sign(&json!({"sub": "me"}));
        assert_eq!(mine.verify(&token), Some(json!({"sub": "me"})));
        assert_eq!(other.verify(&token), None);
        for bad in ["", "a", "a.b", "a.b.c", "eyJhbGciOiJub25lIn0.e30.x", &token[1..], &format!("{token}A")] {
            assert_eq!(mine.verify(bad), None, "{bad}");
        }
    }
}
