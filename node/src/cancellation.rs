//! A request to end that all tasks of a process can wait for.

use std::sync::Arc;

use tokio::sync::watch;

/// A flag that is set once. Clones share it; a child also follows its parent.
#[derive(Clone, Debug, Default)]
pub struct CancellationToken {
    own: Arc<watch::Sender<bool>>,
    parent: Option<Arc<watch::Sender<bool>>>,
}

impl CancellationToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> CancellationToken {
        CancellationToken::default()
    }

    /// Creates a token that is cancelled with this one, or before it by itself. A child has no
    /// children of its own.
    pub fn child_token(&self) -> CancellationToken {
        CancellationToken {
            own: Arc::default(),
            parent: Some(self.own.clone()),
        }
    }

    /// Cancels the token and its children.
    pub fn cancel(&self) {
        self.own.send_replace(true);
    }

    /// Returns whether the token is cancelled.
    pub fn is_cancelled(&self) -> bool {
        let parent = self.parent.as_ref();
        *self.own.borrow() || parent.is_some_and(|parent| *parent.borrow())
    }

    /// Waits until the token is cancelled.
    pub async fn cancelled(&self) {
        match &self.parent {
            None => set(&self.own).await,
            Some(parent) => tokio::select! {
                () = set(&self.own) => {}
                () = set(parent) => {}
            },
        }
    }
}

async fn set(flag: &watch::Sender<bool>) {
    // Nobody waits longer than the sender exists.
    let _ = flag.subscribe().wait_for(|is_set| *is_set).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_child_is_cancelled_with_its_parent_or_alone() {
        let parent = CancellationToken::new();
        let (one, other) = (parent.child_token(), parent.child_token());
        let waiting = tokio::spawn({
            let other = other.clone();
            async move { other.cancelled().await }
        });
        one.cancel();
        one.cancelled().await;
        assert!(one.is_cancelled() && !parent.is_cancelled() && !other.is_cancelled());
        parent.cancel();
        waiting.await.unwrap();
        assert!(other.is_cancelled());
    }
}
