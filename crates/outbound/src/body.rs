//! The body of a request, which knows whether it was handed over.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A body of one piece. Hyper takes it when a connection stands and the head of the request is written.
pub(crate) struct OutBody {
    data: Option<Bytes>,
    sent: Sent,
}

/// Whether the body was taken.
#[derive(Clone, Default)]
pub(crate) struct Sent(Arc<AtomicBool>);

impl Sent {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl OutBody {
    pub(crate) fn new(data: Bytes) -> (Self, Sent) {
        let sent = Sent::default();
        (Self { data: (!data.is_empty()).then_some(data), sent: sent.clone() }, sent)
    }
}

impl Body for OutBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self.data.take();
        self.sent.0.store(true, Ordering::Release);
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, Bytes::len) as u64)
    }
}
