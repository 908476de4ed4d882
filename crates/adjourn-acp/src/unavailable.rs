//! An agent that cannot work: it tells its client so, in the words of the protocol.
//!
//! An editor shows its user the error that `initialize` is answered with. Of a program that ends
//! before it has said anything, it shows at best that it has ended.

use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use crate::lines::Line;
use crate::rpc::{Error, INTERNAL_ERROR, Incoming, Outgoing};
use crate::wire::Wire;

/// Answers every request with what is wrong, until the client goes away or `stop`.
///
/// # Errors
/// The streams fail.
pub async fn refuse<R, W>(
    problem: &str,
    wire: Wire<R, W>,
    stop: impl Future<Output = ()>,
) -> std::io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let error = Error::new(INTERNAL_ERROR, problem);
    let error = error.with(json!({ "reason": "UNAVAILABLE" }));
    let Wire { mut lines, mut output, .. } = wire;
    let mut stop = std::pin::pin!(stop);
    loop {
        let line = tokio::select! {
            line = lines.next() => line?,
            () = &mut stop => return Ok(()),
        };
        let mut answer = Outgoing::default();
        match line {
            None => return Ok(()),
            Some(Line::Whole(line)) => {
                if let Ok(Incoming::Request { id, .. }) = Incoming::read(line) {
                    answer.respond(&id, &Err(error.clone()));
                }
            }
            Some(Line::TooLong(_)) => {}
        }
        tokio::select! {
            written = async {
                output.write_all(&answer.take()).await?;
                output.flush().await
            } => written?,
            () = &mut stop => return Ok(()),
        }
    }
}
