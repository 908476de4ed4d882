//! A stream written as an async function that emits.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::driver::BoxStream;

/// Hands items to the side that polls the stream.
#[derive(Debug)]
pub struct Emitter<T>(Arc<Mutex<Option<T>>>);

impl<T> Clone for Emitter<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Emitter<T> {
    /// Emits an item, and returns when the stream is polled again: whatever the other side does
    /// with the item first, it has done by then.
    pub async fn emit(&self, item: T) {
        let mut item = Some(item);
        let mut taken = false;
        poll_fn(|_| {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // The stream polls this future and then takes the item, in that order; it wakes
            // itself, because it has something to hand out.
            if slot.is_some() {
                return Poll::Pending;
            }
            if taken {
                return Poll::Ready(());
            }
            *slot = item.take();
            taken = true;
            Poll::Pending
        })
        .await;
    }
}

/// Makes a stream of what an async function emits; dropping the stream drops the function.
pub fn emitting<T, F>(function: impl FnOnce(Emitter<T>) -> F) -> BoxStream<'static, T>
where
    T: Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let slot = Arc::new(Mutex::new(None));
    let future = function(Emitter(Arc::clone(&slot)));
    Box::pin(Emitted { slot, future: Some(Box::pin(future)) })
}

struct Emitted<T> {
    slot: Arc<Mutex<Option<T>>>,
    /// The function, until it has returned.
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<T: Send + 'static> Stream for Emitted<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let over = match &mut self.future {
            Some(future) => future.as_mut().poll(context).is_ready(),
            None => return Poll::Ready(None),
        };
        if over {
            self.future = None;
        }
        let item = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        match item {
            Some(item) => Poll::Ready(Some(item)),
            None if over => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next<T>(stream: &mut BoxStream<'static, T>) -> Option<T> {
        poll_fn(|context| stream.as_mut().poll_next(context)).await
    }

    #[tokio::test]
    async fn the_function_goes_on_when_it_is_polled_again() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let mut stream = emitting(|out| async move {
            for number in 1..=3 {
                out.emit(number).await;
                log.lock().unwrap().push(number);
            }
        });
        assert_eq!(next(&mut stream).await, Some(1));
        assert!(seen.lock().unwrap().is_empty(), "what follows 1 waits for the next poll");
        assert_eq!(next(&mut stream).await, Some(2));
        assert_eq!(*seen.lock().unwrap(), [1]);
        assert_eq!(next(&mut stream).await, Some(3));
        assert_eq!(next(&mut stream).await, None);
        assert_eq!(next(&mut stream).await, None);
    }
}
