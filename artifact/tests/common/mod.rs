//! Files put together by hand, so that the reader is not tested by the writer alone.

/// The bytes of a file with this directory text and this many payload bytes.
pub fn file(json: impl AsRef<[u8]>, payload_bytes: usize) -> Vec<u8> {
    let json = json.as_ref();
    let mut file = b"NINFER\x00\x02".to_vec();
    file.extend((json.len() as u64).to_le_bytes());
    file.extend(json);
    file.resize(file.len().next_multiple_of(4096) + payload_bytes, 0);
    file
}

/// A directory text around these entries.
pub fn directory(objects: &str) -> String {
    format!(r#"{{"identity":{{"model_id":"m","weights_id":"w"}},"objects":[{objects}]}}"#)
}
