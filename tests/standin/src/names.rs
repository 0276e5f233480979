//! Names as Kubernetes makes them up.

use std::collections::BTreeMap;

use serde_json::Value;

/// The letters and digits of generated names (kubernetes staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go).
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A suffix of `length` characters that differs from one `seed` to the next.
pub fn suffix(seed: u64, length: usize) -> String {
    // SplitMix64, so that neighbouring seeds look unlike each other.
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..length)
        .map(|_| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let index = (mixed ^ (mixed >> 31)) % ALPHABET.len() as u64;
            char::from(ALPHABET[usize::try_from(index).unwrap_or_default()])
        })
        .collect()
}

/// A suffix that depends on a JSON value only, not on the order of its keys.
pub fn hash_of(value: &Value, length: usize) -> String {
    hash(&sorted(value).to_string(), length)
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            fields.into_iter().collect()
        }
        Value::Array(list) => list.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// A suffix that depends on a text only.
pub fn hash(text: &str, length: usize) -> String {
    // FNV-1a.
    let seed = text
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    suffix(seed, length)
}
