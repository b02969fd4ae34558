//! Long computations on a separate thread, while the PEs' messages are handled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use tokio::sync::oneshot;

use super::driver::{Driver, StopReason};

/// A flag that cancels a computation whose result is not needed any more.
struct GiveUp(Arc<AtomicBool>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Driver<'_> {
    /// Computes a result on another thread. A signal or the death of a PE sets the flag that
    /// `compute` receives, and returns without waiting for the thread.
    pub async fn aside<T: Send + 'static>(
        &mut self,
        compute: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, StopReason> {
        let given_up = Arc::new(AtomicBool::new(false));
        let _give_up = GiveUp(given_up.clone());
        let (result, mut computed) = oneshot::channel();
        // The process can exit while a thread runs, but not while a blocking task of the runtime
        // runs.
        thread::spawn(move || result.send(compute(&given_up)));
        loop {
            self.catch_up().await?;
            tokio::select! {
                computed = &mut computed => match computed {
                    Ok(computed) => return Ok(computed),
                    Err(_) => panic!("the computation has panicked"),
                },
                () = self.handle_event() => {}
            }
        }
    }
}
