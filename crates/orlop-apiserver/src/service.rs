//! The server as a `tower::Service`: one request in, one answer out, over whatever transport.

use crate::auth::User;
use crate::body::Body;
use crate::discovery;
use crate::negotiate::{self, Accepted, Offer};
use crate::rest::{Answer, Call};
use crate::route::{Query, Route};
use crate::server::Inner;
use crate::status::ApiError;
use crate::turns::Turns;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The largest body of a request.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Answers up to this size are never compressed.
const PLAIN_BYTES_MAX: usize = 128 * 1024;
/// How many characters all warnings of an answer may have before each is cut.
const WARNING_CHARS_MAX: usize = 4 * 1024;
/// How many characters of a warning are left when they are cut.
const WARNING_ITEM_CHARS_MAX: usize = 256;

/// A way to call the server. Cheap to clone.
#[derive(Clone)]
pub struct ApiService {
    server: Arc<Inner>,
    user: Option<Arc<User>>,
}

impl ApiService {
    pub(crate) fn new(server: Arc<Inner>, user: Option<Arc<User>>) -> Self {
        Self { server, user }
    }

    async fn answer<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        // HTTP/2 says the host in the request's address.
        if let Some(authority) = parts.uri.authority()
            && !parts.headers.contains_key(header::HOST)
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            parts.headers.insert(header::HOST, host);
        }
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let route = Route::parse(&parts.method, parts.uri.path(), &query);
        let mut warnings = Vec::new();
        let accept = header_text(&parts.headers, header::ACCEPT);
        let is_pretty = match query.get("pretty") {
            None | Some("") => negotiate::is_for_people(header_text(&parts.headers, header::USER_AGENT)),
            Some(value) => matches!(value, "1" | "t" | "T" | "TRUE" | "true" | "True"),
        };
        let mut accepted = Accepted::JSON;
        let is_head = parts.method == Method::HEAD;
        let verb = match parts.method {
            _ if route.is_resource => route.verb,
            Method::GET => "get",
            Method::HEAD => "head",
            _ => "other",
        };
        let result = async {
            let user = self.server.auth.authenticate(&self.server, self.user.as_ref(), &parts.headers)?;
            let user = self.server.auth.impersonate(&self.server, user, &parts.headers, &route)?;
            self.server.authorize(&user, &route)?;
            if !route.is_resource {
                return discovery::answer(
                    &self.server,
                    &parts.method,
                    &route,
                    &query,
                    &parts.headers,
                    &mut accepted,
                );
            }
            let kind = discovery::resolve(&self.server, &parts.method, &route)?;
            let offer = if kind.custom().is_some() { Offer::Custom } else { Offer::BuiltIn };
            accepted = if route.verb == "watch" {
                negotiate::accept_stream(accept, offer)?
            } else {
                negotiate::accept(accept, offer)?
            };
            let body = read_body(body).await?;
            let mut call = Call {
                server: self.server.clone(),
                kind: kind.clone(),
                route,
                query,
                user,
                user_agent: header_text(&parts.headers, header::USER_AGENT).unwrap_or_default().to_owned(),
                content_type: header_text(&parts.headers, header::CONTENT_TYPE).map(str::to_owned),
                accepted,
                body,
                warnings: kind.deprecation().into_iter().collect(),
                strict: Vec::new(),
                conversions: crate::crd::Conversions::default(),
            };
            let result = call.run().await;
            warnings = std::mem::take(&mut call.warnings);
            if !matches!(call.route.verb, "get" | "list" | "watch") {
                self.server.settled().await?;
            }
            result
        }
        .await;
        if result.is_err() {
            accepted = negotiate::accept_error(accept);
        }
        accepted.pretty |= is_pretty;
        let mut response = respond(result, accepted);
        self.server.metrics.count(verb, response.status().as_u16());
        for header in warning_headers(&warnings) {
            response.headers_mut().append(header::WARNING, header);
        }
        let encodings = header_text(&parts.headers, header::ACCEPT_ENCODING).unwrap_or_default();
        if encodings.split(',').any(|encoding| encoding.trim() == "gzip") {
            response = compress(response, &self.server.turns).await;
        }
        if is_head {
            *response.body_mut() = Body::whole(Bytes::new());
        }
        response
    }
}

/// Warnings as headers: too much text is cut, text that no header can carry is left out.
fn warning_headers(warnings: &[String]) -> Vec<HeaderValue> {
    let all: usize = warnings.iter().map(|warning| warning.chars().count()).sum();
    let item_max = if all > WARNING_CHARS_MAX { WARNING_ITEM_CHARS_MAX } else { usize::MAX };
    let mut written = 0;
    let mut headers = Vec::new();
    for warning in warnings.iter().filter(|warning| !warning.is_empty()) {
        if written >= WARNING_CHARS_MAX {
            break;
        }
        let text: String = warning.chars().take(item_max).collect();
        if text.chars().any(char::is_control) {
            continue;
        }
        written += text.chars().count();
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        headers.extend(HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()).ok());
    }
    headers
}

async fn read_body<B>(body: B) -> Result<Bytes, ApiError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large(BODY_BYTES_MAX)),
        Err(error) => Err(ApiError::bad_request(format!("the request body could not be read: {error}"))),
    }
}

fn respond(result: Result<Answer, ApiError>, accepted: Accepted) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::new()));
    let mut own = Vec::new();
    let (status, (content_type, body)) = match result {
        Ok(mut answer) => {
            own = answer.take_headers();
            (answer.status(), answer.into_body(accepted))
        }
        Err(error) => {
            if let Some(seconds) = error.retry_after() {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            let answer = match error.plain() {
                Some(text) => Answer::Text(error.code(), text.to_owned()),
                None => Answer::Value(error.code(), error.to_status()),
            };
            (error.code(), answer.into_body(accepted))
        }
    };
    *response.status_mut() =
        http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    if !content_type.is_empty() {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    for (name, value) in own {
        response.headers_mut().insert(name, value);
    }
    *response.body_mut() = body;
    response
}

/// Compresses an answer that is worth it.
async fn compress(response: Response<Body>, turns: &Turns) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let body = match body.gzip_above(PLAIN_BYTES_MAX, turns).await {
        Ok(compressed) => {
            parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
            compressed
        }
        Err(plain) => plain,
    };
    Response::from_parts(parts, body)
}

pub(crate) fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

impl<B> tower_service::Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}
