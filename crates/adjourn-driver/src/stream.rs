//! A stream written as an async function that emits.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use crate::driver::BoxStream;

/// Hands items to the side that polls the stream.
#[derive(Debug)]
pub struct Emitter<T>(Arc<Mutex<Slot<T>>>);

/// What lies between the function that emits and the side that polls.
#[derive(Debug)]
struct Slot<T> {
    item: Option<T>,
    /// The side that polls, while it waits for an item.
    reader: Option<Waker>,
    /// Those who emit and wait. Within the function itself the reader polls them; parts of it that run
    /// as tasks of their own have to be woken.
    writers: Vec<Waker>,
}

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
        poll_fn(|context| {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.item.is_none() {
                if taken {
                    return Poll::Ready(());
                }
                slot.item = item.take();
                taken = true;
                // A stream that is polling this future takes the item right behind it.
                if let Some(reader) =
                    slot.reader.take_if(|reader| !reader.will_wake(context.waker()))
                {
                    reader.wake();
                }
            }
            if slot.writers.iter().all(|writer| !writer.will_wake(context.waker())) {
                slot.writers.push(context.waker().clone());
            }
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
    let slot = Slot { item: None, reader: None, writers: Vec::new() };
    let slot = Arc::new(Mutex::new(slot));
    let future = function(Emitter(Arc::clone(&slot)));
    Box::pin(Emitted { slot, future: Some(Box::pin(future)) })
}

struct Emitted<T> {
    slot: Arc<Mutex<Slot<T>>>,
    /// The function, until it has returned.
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<T: Send + 'static> Stream for Emitted<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let waker = context.waker();
        let writers = {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            // Set before the function is polled, so that nothing which comes meanwhile is missed.
            if slot.reader.as_ref().is_none_or(|reader| !reader.will_wake(waker)) {
                slot.reader = Some(waker.clone());
            }
            std::mem::take(&mut slot.writers)
        };
        // Those that this polls itself need not be woken.
        writers.into_iter().filter(|writer| !writer.will_wake(waker)).for_each(Waker::wake);
        let over = match &mut self.future {
            Some(future) => future.as_mut().poll(context).is_ready(),
            None => return Poll::Ready(None),
        };
        if over {
            self.future = None;
        }
        let item = self.slot.lock().unwrap_or_else(PoisonError::into_inner).item.take();
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
    async fn a_task_of_its_own_can_emit_and_goes_on_when_the_stream_is_polled_again() {
        let mut stream = emitting(|out: Emitter<u32>| async move {
            let news = out.clone();
            let task = tokio::spawn(async move {
                for number in 0..3 {
                    news.emit(number).await;
                }
            });
            task.await.unwrap();
            out.emit(3).await;
        });
        let mut heard = Vec::new();
        while let Some(number) = next(&mut stream).await {
            heard.push(number);
        }
        assert_eq!(heard, [0, 1, 2, 3]);
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
