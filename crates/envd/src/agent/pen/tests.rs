use wakeful_wire::rpc::ToolStatus;

use super::*;

fn text(text: &str) -> AgentUpdate {
    let message = Some("outside:".to_owned());
    AgentUpdate::Text { role: Role::Agent, message, text: text.to_owned() }
}

fn tool(id: &str, status: ToolStatus) -> AgentUpdate {
    AgentUpdate::Tool(ToolPatch { id: id.to_owned(), status: Some(status), ..ToolPatch::default() })
}

async fn said(updates: Vec<AgentUpdate>) -> Vec<AgentUpdate> {
    let (sender, mut receiver) = mpsc::channel(1000);
    let mut pen = Pen::new(sender);
    for update in updates {
        let update = if let AgentUpdate::Text { role, text, .. } = update {
            AgentUpdate::Text { role, message: None, text }
        } else {
            update
        };
        pen.say(update).await.unwrap();
    }
    pen.close().await.unwrap();
    drop(pen);
    let mut all = Vec::new();
    while let Some(said) = receiver.recv().await {
        all.push(said.update);
    }
    all
}

#[tokio::test]
async fn words_are_joined_and_order_is_kept() {
    let all = said(vec![
        text("one "),
        text("two"),
        tool("t", ToolStatus::Pending),
        tool("t", ToolStatus::InProgress),
        text("three"),
    ])
    .await;
    assert_eq!(all, [text("one two"), tool("t", ToolStatus::InProgress), text("three")]);
}

#[tokio::test]
async fn an_id_that_is_used_again_is_not_joined_with_its_end() {
    let updates = vec![tool("t", ToolStatus::Completed), tool("t", ToolStatus::Pending)];
    assert_eq!(said(updates.clone()).await, updates);
}

#[tokio::test]
async fn a_flood_is_cut_and_said_so_once() {
    let piece = "x".repeat(PIECE);
    let all = said(vec![text(&piece); FLOOD / PIECE + 10]).await;
    let bytes: usize = all
        .iter()
        .map(|update| if let AgentUpdate::Text { text, .. } = update { text.len() } else { 0 })
        .sum();
    assert_eq!(bytes, FLOOD);
    let Some(AgentUpdate::Notice { text, .. }) = all.last() else { panic!("{:?}", all.last()) };
    assert!(text.starts_with(&(10 * PIECE).to_string()), "{text}");
}

#[tokio::test]
async fn a_long_text_is_said_in_pieces_between_characters() {
    let long = "é".repeat(PIECE);
    let all = said(vec![text(&long)]).await;
    assert!(all.len() > 1);
    let joined: String = all
        .into_iter()
        .map(|update| {
            let AgentUpdate::Text { text, .. } = update else { panic!("{update:?}") };
            text
        })
        .collect();
    assert_eq!(joined, long);
}
