//! Any HTTP receiver. The request says who it is from by a signature.
//!
//! `Woodward-Signature: v1=<hex>` is the HMAC-SHA256, under the shared secret, of
//! `<timestamp>.<delivery>.<body>`: the values of `Woodward-Timestamp` (seconds since 1970) and
//! `Woodward-Delivery`, and the body as it came. A receiver refuses what is older than a few minutes
//! and what it has seen before.

use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::header::HeaderName;
use sha2::Sha256;

use crate::http::Post;
use crate::{Message, Secret, SendError};

const TIMESTAMP: HeaderName = HeaderName::from_static("woodward-timestamp");
const DELIVERY: HeaderName = HeaderName::from_static("woodward-delivery");
const SIGNATURE: HeaderName = HeaderName::from_static("woodward-signature");

pub(crate) fn request(
    url: &Secret,
    secret: Option<&Secret>,
    message: &Message,
) -> Result<Post, SendError> {
    let body = message.json().to_string().into_bytes();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let mut headers = vec![(TIMESTAMP, now.to_string()), (DELIVERY, message.id.clone())];
    if let Some(secret) = secret {
        let key = secret.load()?;
        headers.push((SIGNATURE, sign(key.as_bytes(), now, &message.id, &body)));
    }
    Ok(Post {
        url: url.load()?,
        headers,
        body,
        content_type: "application/json",
    })
}

/// The signature of a delivery, as its header has it.
pub fn sign(key: &[u8], timestamp: u64, delivery: &str, body: &[u8]) -> String {
    let mut mac = <Hmac<Sha256>>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("{timestamp}.{delivery}.").as_bytes());
    mac.update(body);
    let tag = mac.finalize().into_bytes();
    let hex: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v1={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_timestamp_delivery_and_body() {
        // printf '1700000000.d-1.{}' | openssl dgst -sha256 -hmac hush
        let known = "v1=815158cbff8b55f1a541c9f339f8e5c21872592e52b701b422aee6449603d54a";
        assert_eq!(sign(b"hush", 1_700_000_000, "d-1", b"{}"), known);
        assert_ne!(sign(b"hush", 1_700_000_001, "d-1", b"{}"), known);
        assert_ne!(sign(b"hush", 1_700_000_000, "d-2", b"{}"), known);
        assert_ne!(sign(b"other", 1_700_000_000, "d-1", b"{}"), known);
    }
}
