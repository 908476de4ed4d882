//! An agent that cannot work: it tells its client so, in the words of the protocol.
//!
//! An editor shows its user the error that `initialize` is answered with. Of a program that ends
//! before it has said anything, it shows at best that it has ended.

use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use crate::lines::Line;
use crate::rpc::{Error, INTERNAL_ERROR, Incoming, Outgoing, Start};
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
    let Wire { mut lines, mut output, unsent, .. } = wire;
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        written = output.write_all(&unsent) => written?,
        () = &mut stop => return Ok(()),
    }
    loop {
        let line = tokio::select! {
            line = lines.next() => line?,
            () = &mut stop => return Ok(()),
        };
        let mut answer = Outgoing::default();
        match line {
            None => return Ok(()),
            // Empty lines between messages are ignored.
            Some(Line::Whole(line)) if line.trim_ascii().is_empty() => {}
            Some(Line::Whole(line)) => match Incoming::read(line) {
                Ok(Incoming::Request { id, .. }) | Err((id, _)) => {
                    answer.respond(&id, &Err(error.clone()));
                }
                Ok(Incoming::Notification { .. } | Incoming::Response { .. }) => {}
            },
            Some(Line::TooLong(start)) => {
                if let Start { id: Some(id), answers: false } = Start::read(start) {
                    answer.respond(&id, &Err(error.clone()));
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::LINE_BYTES;

    #[tokio::test]
    async fn every_request_is_told_what_is_wrong_however_long_it_is() {
        let long = "x".repeat(LINE_BYTES);
        let input = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}}\n\
             {{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/prompt\",\"params\":\"{long}\"}}\n\
             {{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\"{long}\"}}\n"
        );
        let mut output = Vec::new();
        let wire = Wire::new(input.as_bytes(), &mut output);
        refuse("the script is wrong", wire, std::future::pending()).await.unwrap();
        let output = String::from_utf8(output).unwrap();
        let ids: Vec<_> = output.lines().map(|line| line.get(..24).unwrap()).collect();
        assert_eq!(ids, [r#"{"jsonrpc":"2.0","id":1,"#, r#"{"jsonrpc":"2.0","id":2,"#]);
        assert_eq!(output.matches("the script is wrong").count(), 4, "{output}");
    }
}
