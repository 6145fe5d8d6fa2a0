//! Absolute URIs and paths as `url` and `isURL` read them.

use orlop_schema::field::go_quote;

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub(crate) scheme: String,
    /// Host with port.
    pub(crate) host: String,
    pub(crate) path: String,
    /// Query parameters in the order of their first appearance.
    pub(crate) query: Vec<(String, Vec<String>)>,
    user: Option<String>,
    raw_query: String,
}

impl Url {
    /// Reads an absolute URI or an absolute path.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let fail = |why: &str| Err(format!("parse {}: {why}", go_quote(text)));
        if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return fail("net/url: invalid control character in URL");
        }
        if text.is_empty() {
            return fail("empty url");
        }
        let (scheme, rest) = match scheme(text) {
            Ok(found) => found,
            Err(why) => return fail(why),
        };
        let (rest, raw_query) = rest.split_once('?').unwrap_or((rest, ""));
        if !rest.starts_with('/') {
            return if scheme.is_empty() {
                fail("invalid URI for request")
            } else {
                Ok(Self {
                    scheme,
                    host: String::new(),
                    path: String::new(),
                    query: query(raw_query),
                    user: None,
                    raw_query: raw_query.to_owned(),
                })
            };
        }
        let mut url = Self {
            scheme,
            host: String::new(),
            path: rest.to_owned(),
            query: query(raw_query),
            user: None,
            raw_query: raw_query.to_owned(),
        };
        if let Some(authority) = rest.strip_prefix("//").filter(|_| !url.scheme.is_empty()) {
            let (authority, path) = authority.find('/').map_or((authority, ""), |at| authority.split_at(at));
            url.path = path.to_owned();
            let (user, host) =
                authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
            url.user = user.map(str::to_owned);
            url.host = host.to_owned();
            if let Some(inner) = host.strip_prefix('[') {
                let Some((_, port)) = inner.split_once(']') else { return fail("missing ']' in host") };
                if !valid_port(port) {
                    return fail(&format!("invalid port {} after host", go_quote(port)));
                }
            } else if let Some(at) = host.rfind(':')
                && !valid_port(&host[at..])
            {
                return fail(&format!("invalid port {} after host", go_quote(&host[at..])));
            }
            if let Some(bad) = host.chars().find(|c| {
                matches!(c, ' ' | '<' | '>' | '"' | '\\' | '^' | '`' | '{' | '|' | '}') || (*c == '#')
            }) {
                return fail(&format!("invalid character {} in host name", go_quote(&bad.to_string())));
            }
        }
        if let Some(bad) = bad_escape(&url.path) {
            return fail(&format!("invalid URL escape {}", go_quote(&bad)));
        }
        Ok(url)
    }

    pub(crate) fn hostname(&self) -> &str {
        match self.host.strip_prefix('[') {
            Some(inner) => inner.split(']').next().unwrap_or_default(),
            None => self.host.rsplit_once(':').map_or(&self.host, |(name, _)| name),
        }
    }

    pub(crate) fn port(&self) -> &str {
        let tail = self.host.rsplit_once(']').map_or(self.host.as_str(), |(_, tail)| tail);
        tail.rsplit_once(':').map_or("", |(_, port)| port)
    }

    /// The path with what needs it escaped.
    pub(crate) fn escaped_path(&self) -> String {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@%!'()*[]".contains(&b);
        self.path
            .bytes()
            .map(|b| if plain(b) { (b as char).to_string() } else { format!("%{b:02X}") })
            .collect()
    }
}

fn valid_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

fn scheme(text: &str) -> Result<(String, &str), &'static str> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            '0'..='9' | '+' | '-' | '.' => return Ok((String::new(), text)),
            ':' if at == 0 => return Err("missing protocol scheme"),
            ':' => return Ok((text[..at].to_lowercase(), &text[at + 1..])),
            _ => return Ok((String::new(), text)),
        }
    }
    Ok((String::new(), text))
}

fn bad_escape(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    let at = (0..bytes.len()).find(|&at| bytes[at] == b'%' && !(hex(at + 1) && hex(at + 2)))?;
    Some(String::from_utf8_lossy(&bytes[at..(at + 3).min(bytes.len())]).into_owned())
}

fn query(raw: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for pair in raw.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(key), Some(value)) = (unescape(key), unescape(value)) else { continue };
        match found.iter_mut().find(|(name, _)| *name == key) {
            Some((_, values)) => values.push(value),
            None => found.push((key, vec![value])),
        }
    }
    found
}

fn unescape(text: &str) -> Option<String> {
    if bad_escape(text).is_some() {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |b: Option<u8>| b.and_then(|b| (b as char).to_digit(16));
                (digit(rest.next())? * 16 + digit(rest.next())?) as u8
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let table = [
            ("https://h.com:80/p?q=1", Ok(("https", "h.com:80", "h.com", "80", "/p"))),
            ("http://[::1]:8080/a b", Ok(("http", "[::1]:8080", "::1", "8080", "/a%20b"))),
            ("/path", Ok(("", "", "", "", "/path"))),
            ("../x", Err("parse \"../x\": invalid URI for request")),
            ("not a url", Err("parse \"not a url\": invalid URI for request")),
            (":x", Err("parse \":x\": missing protocol scheme")),
            ("http://h:x/", Err("parse \"http://h:x/\": invalid port \":x\" after host")),
            ("", Err("parse \"\": empty url")),
        ];
        for (text, expected) in table {
            let url = Url::parse(text);
            let found = url
                .as_ref()
                .map(|u| (u.scheme.as_str(), u.host.as_str(), u.hostname(), u.port(), u.escaped_path()));
            let expected =
                expected.map(|(s, h, n, p, path)| (s, h, n, p, path.to_owned())).map_err(str::to_owned);
            assert_eq!(found.map_err(Clone::clone), expected, "{text}");
        }
    }
}
