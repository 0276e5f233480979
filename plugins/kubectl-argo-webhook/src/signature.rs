//! Signatures and tokens: what proves to the server that an event is genuine. Pure.

use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::provider::Provider;

/// A block that stays in the processor's cache while several digests read it.
const BLOCK: usize = 32 * 1024;

/// What proves that an event is genuine.
#[derive(Clone, PartialEq, Eq)]
pub struct Proof {
    /// Header names and values; the values of the providers without an HMAC are secrets.
    pub headers: Vec<(&'static str, String)>,
    /// The signature, where it can be shown: an HMAC does not tell the key, a token is the key.
    pub signature: Option<String>,
}

/// Signs a body the way the provider does. GitHub's events carry SHA-1, too: Argo CD before v2.13 reads only that.
pub fn sign(provider: Provider, key: &[u8], body: &[u8]) -> Proof {
    let token = || String::from_utf8_lossy(key).into_owned();
    match provider {
        Provider::Github => {
            let (sha256, sha1) = (hmac_sha256(key, body), hmac_sha1(key, body));
            let signature = format!("sha256={sha256}");
            Proof {
                headers: vec![("X-Hub-Signature-256", signature.clone()), ("X-Hub-Signature", format!("sha1={sha1}"))],
                signature: Some(signature),
            }
        }
        Provider::BitbucketServer => {
            let signature = format!("sha256={}", hmac_sha256(key, body));
            Proof { headers: vec![("X-Hub-Signature", signature.clone())], signature: Some(signature) }
        }
        Provider::Gogs => {
            let signature = hmac_sha256(key, body);
            Proof { headers: vec![("X-Gogs-Signature", signature.clone())], signature: Some(signature) }
        }
        Provider::Gitlab => Proof { headers: vec![("X-Gitlab-Token", token())], signature: None },
        Provider::Bitbucket => Proof { headers: vec![("X-Hook-UUID", token())], signature: None },
        Provider::Azuredevops => {
            let basic = format!("Basic {}", BASE64_STANDARD.encode(key));
            Proof { headers: vec![("Authorization", basic)], signature: None }
        }
    }
}

/// HMAC-SHA256, in lower-case hexadecimal.
pub fn hmac_sha256(key: &[u8], body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    body.chunks(BLOCK).for_each(|block| mac.update(block));
    hex::encode(mac.finalize().into_bytes())
}

/// HMAC-SHA1, in lower-case hexadecimal.
pub fn hmac_sha1(key: &[u8], body: &[u8]) -> String {
    let mut mac = Hmac::<Sha1>::new_from_slice(key).expect("HMAC takes keys of any length");
    body.chunks(BLOCK).for_each(|block| mac.update(block));
    hex::encode(mac.finalize().into_bytes())
}

/// SHA-256, in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    const KEY: &[u8] = b"It's a Secret to Everybody";
    const BODY: &[u8] = b"Hello, World!";
    /// GitHub documentation, "Validating webhook deliveries".
    const PUBLISHED: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    #[test]
    fn githubs_published_vector_comes_out() {
        let proof = sign(Provider::Github, KEY, BODY);
        assert_eq!(proof.signature.unwrap(), format!("sha256={PUBLISHED}"));
        assert_eq!(sign(Provider::Gogs, KEY, BODY).headers, [("X-Gogs-Signature", PUBLISHED.to_owned())]);
    }

    #[test]
    fn rfc_2202_and_rfc_4231_test_case_2_come_out() {
        let (key, data) = (b"Jefe", b"what do ya want for nothing?");
        assert_eq!(hmac_sha1(key, data), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        assert_eq!(hmac_sha256(key, data), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn a_token_is_never_shown_as_a_signature() {
        for provider in Provider::value_variants().iter().copied() {
            assert_eq!(sign(provider, KEY, BODY).signature.is_some(), provider.has_hmac(), "{provider:?}");
        }
    }
}
