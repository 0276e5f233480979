//! What must be random.

use kit::error::Error;

/// A random UUID (version 4), which names a delivery.
///
/// # Errors
/// When the system has no random bytes.
pub fn uuid() -> Result<String, Error> {
    let mut bytes = bytes::<16>()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex::encode(bytes);
    Ok([&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-"))
}

/// A new key: 16 random bytes in lower-case hexadecimal.
///
/// # Errors
/// When the system has no random bytes.
pub fn key() -> Result<String, Error> {
    Ok(hex::encode(bytes::<16>()?))
}

fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::unknown("no-randomness", format!("the system gives no random bytes: {error}")))?;
    Ok(bytes)
}
