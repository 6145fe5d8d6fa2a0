//! Bodies of answers: bytes, or a watch.

use crate::turns::Turns;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::future::Future;
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A step of a stream: a chunk and the state after it, or the end.
pub(crate) type Step<S> = Pin<Box<dyn Future<Output = Option<(Bytes, S)>> + Send>>;

/// How much is compressed without a look at others.
const GZIP_STEP: usize = 32 * 1024;

/// The body of an answer.
pub struct Body(Inner);

enum Inner {
    Whole(Option<Bytes>),
    Stream(Pin<Box<dyn http_body::Body<Data = Bytes, Error = Infallible> + Send>>),
}

impl Body {
    /// A body that is known at once.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Whole(Some(bytes.into())))
    }

    /// A body that is made step by step, as far as the reader reads.
    pub(crate) fn unfold<S: Send + 'static>(state: S, step: fn(S) -> Step<S>) -> Self {
        Self(Inner::Stream(Box::pin(Unfold { running: step(state), step, ended: false })))
    }
}

impl Body {
    /// The body compressed, if it is known and larger than `bytes_max`.
    pub(crate) async fn gzip_above(self, bytes_max: usize, turns: &Turns) -> Result<Self, Self> {
        let bytes = match self.0 {
            Inner::Whole(Some(bytes)) if bytes.len() > bytes_max => bytes,
            inner => return Err(Self(inner)),
        };
        let mut turn = turns.take(bytes.len()).await;
        let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
        for part in bytes.chunks(GZIP_STEP) {
            if encoder.write_all(part).is_err() {
                return Err(Self::whole(bytes));
            }
            turn.did(part.len()).await;
        }
        encoder.finish().map(Self::whole).map_err(|_| Self::whole(bytes))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Inner::Whole(bytes) => {
                Poll::Ready(bytes.take().filter(|b| !b.is_empty()).map(|b| Ok(Frame::data(b))))
            }
            Inner::Stream(stream) => stream.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Inner::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Inner::Stream(_) => SizeHint::default(),
        }
    }
}

struct Unfold<S> {
    running: Step<S>,
    step: fn(S) -> Step<S>,
    ended: bool,
}

impl<S: Send> http_body::Body for Unfold<S> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.running.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Poll::Ready(Some((chunk, state))) => {
                self.running = (self.step)(state);
                Poll::Ready(Some(Ok(Frame::data(chunk))))
            }
        }
    }
}
