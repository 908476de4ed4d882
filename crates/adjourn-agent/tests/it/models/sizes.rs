//! Files that are too large for a provider, which would refuse every later request, too.

use adjourn_driver::{Block, ModelRole};
use adjourn_testkit::provider::{Reply, Server, anthropic, openai};
use serde_json::{Value, json};

use super::{asking, block, heard, message, model_at};

/// How much base 64 of an image Claude takes.
const CLAUDE_IMAGE: usize = 5_242_880;

fn image(size: usize) -> Block {
    let data = "A".repeat(size);
    block(json!({ "type": "image", "mimeType": "image/png", "data": data, "uri": "file:///a.png" }))
}

fn document(size: usize) -> Block {
    let resource = json!({ "uri": "file:///a.pdf", "mimeType": "application/pdf",
                           "blob": "A".repeat(size) });
    block(json!({ "type": "resource", "resource": resource }))
}

/// Returns what a model is sent of two blocks.
async fn sent(name: &str, reply: Reply, blocks: [Block; 2]) -> [Value; 2] {
    let server = Server::start(vec![reply]).await;
    let messages = vec![message(ModelRole::User, blocks.to_vec())];
    heard(&*model_at(name, &server), asking(messages)).await;
    let mut body = server.body();
    let messages = body["messages"].as_array_mut().unwrap();
    let mut parts = messages.pop().unwrap()["content"].take();
    [parts[0].take(), parts[1].take()]
}

fn left_out(what: &str, size: usize, most: usize) -> String {
    format!(
        "[adjourn] Left out, because this model cannot be shown it: {what}, {size} bytes in base \
         64, where it takes {most} at most"
    )
}

#[tokio::test]
async fn an_image_that_is_too_large_for_claude_is_left_out() {
    let blocks = [image(CLAUDE_IMAGE), image(CLAUDE_IMAGE + 4)];
    let parts = sent(super::anthropic::MODEL, anthropic::says(&["I see."]), blocks).await;
    assert_eq!(parts[0]["type"], "image");
    let words = left_out("image/png, file:///a.png", CLAUDE_IMAGE + 4, CLAUDE_IMAGE);
    assert_eq!(parts[1]["text"], words);
}

#[tokio::test]
async fn claude_has_its_limits_wherever_it_is_asked() {
    let blocks = [image(CLAUDE_IMAGE), image(CLAUDE_IMAGE + 4)];
    let parts = sent("openai/claude-sonnet-4-6", openai::says("I see."), blocks).await;
    assert_eq!(parts[0]["type"], "image_url");
    let words = left_out("image/png, file:///a.png", CLAUDE_IMAGE + 4, CLAUDE_IMAGE);
    assert_eq!(parts[1]["text"], words);
}

#[tokio::test]
async fn other_models_take_larger_images() {
    let blocks = [image(20_000_000), image(20_000_004)];
    let parts = sent("openai/gpt-5", openai::says("I see."), blocks).await;
    assert_eq!(parts[0]["type"], "image_url");
    assert_eq!(parts[1]["text"], left_out("image/png, file:///a.png", 20_000_004, 20_000_000));
}

#[tokio::test]
async fn a_document_that_fills_a_request_is_left_out() {
    let blocks = [document(CLAUDE_IMAGE + 4), document(30_000_004)];
    let parts = sent(super::anthropic::MODEL, anthropic::says(&["I see."]), blocks).await;
    assert_eq!(parts[0]["type"], "document");
    let words = left_out("application/pdf, file:///a.pdf", 30_000_004, 30_000_000);
    assert_eq!(parts[1]["text"], words);
}
