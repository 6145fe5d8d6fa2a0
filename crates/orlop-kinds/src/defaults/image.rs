//! Image references, as far as the pull policy depends on them.

/// `Always` for images that are, or would be, tagged `latest`; `IfNotPresent` for others and for what is no
/// reference at all.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if is_latest(image) == Some(true) { "Always" } else { "IfNotPresent" }
}

/// Whether a reference means the tag `latest`; `None` for text that is no reference.
fn is_latest(image: &str) -> Option<bool> {
    if image.len() == 64 && image.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let (domain, rest) = match image.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':']) || first == "localhost" || first.to_lowercase() != first =>
        {
            (Some(first), rest)
        }
        _ => (None, image),
    };
    let (rest, digest) = rest.split_once('@').map_or((rest, None), |(rest, digest)| (rest, Some(digest)));
    let (path, tag) = rest.split_once(':').map_or((rest, None), |(path, tag)| (path, Some(tag)));
    let valid = domain.is_none_or(is_domain)
        && path.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
        && domain.map_or("docker.io/library".len(), str::len) + 1 + path.len() <= 255;
    valid.then(|| match tag {
        Some(tag) => tag == "latest",
        None => digest.is_none(),
    })
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) if !domain.ends_with(']') => (host, Some(port)),
        _ => (domain, None),
    };
    let alphanumeric = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let label = |label: &str| {
        let bytes = label.as_bytes();
        alphanumeric(bytes.first())
            && alphanumeric(bytes.last())
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    };
    let host_ok = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(address) => !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':'),
        None => host.split('.').all(label),
    };
    host_ok && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

/// Lower-case words joined by one dot, one or two underscores, or dashes.
fn is_component(component: &str) -> bool {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = component.as_bytes();
    let ends = bytes.first().copied().is_some_and(word) && bytes.last().copied().is_some_and(word);
    ends && component
        .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        .all(|joint| matches!(joint, "" | "." | "_" | "__") || joint.bytes().all(|b| b == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=128).contains(&tag.len())
        && word(tag.as_bytes()[0])
        && tag.bytes().all(|b| word(b) || matches!(b, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_container_tools_read_them() {
        let digest = format!("a@sha256:{}", "0".repeat(64));
        let tagged = format!("a:latest@sha256:{}", "0".repeat(64));
        let id = "a".repeat(64);
        for (image, latest) in [
            ("nginx", Some(true)),
            ("nginx:latest", Some(true)),
            ("nginx:1.2", Some(false)),
            ("reg.io:5000/a/b", Some(true)),
            ("reg.io:5000/a/b:x", Some(false)),
            ("localhost/a", Some(true)),
            ("[::1]:5000/a", Some(true)),
            (digest.as_str(), Some(false)),
            (tagged.as_str(), Some(true)),
            ("", None),
            ("NGINX", None),
            ("a b", None),
            ("a:", None),
            ("a..b", None),
            ("a__b", Some(true)),
            ("a---b", Some(true)),
            ("a@sha256:00", None),
            (id.as_str(), None),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }
}
