//! The costs of processes on each machine of a cluster: cached, or measured by one PE of each
//! machine at the same time.

use super::driver::{Driver, StopReason};
use crate::job::host_costs::{self, HostCosts, Key};
use crate::rounds::controller::ControllerEvent;

impl Driver<'_> {
    /// Returns the costs on all machines; costs that no PE can measure are assumed.
    pub async fn know_hosts(&mut self) -> Result<HostCosts, StopReason> {
        let site = &self.request.site;
        let encrypted = site.guard.is_encrypted();
        let keys = self.keys(encrypted);
        let mut asked: Vec<&Key> = Vec::new();
        for pe in site.tree.pes() {
            let Some(key) = &keys[pe.index()] else {
                continue;
            };
            if host_costs::known(key).is_none() && !asked.contains(&key) {
                asked.push(key);
                self.controller.measure_host(self.now(), pe, encrypted);
            }
        }
        while let Some(answer) = self.next_answer().await? {
            if let ControllerEvent::HostMeasured(pe, said) = answer
                && let Some(key) = &keys[pe.index()]
            {
                host_costs::take_measured(key, &said);
            }
        }
        Ok(HostCosts::of(&keys, &site.tree, encrypted))
    }

    /// Returns for each PE index the key of the PE's machine, if it is known.
    fn keys(&self, encrypted: bool) -> Vec<Option<Key>> {
        let key = |pe| Key::of_pe(self.cluster.register(pe)?, encrypted);
        self.request.site.tree.ids().map(key).collect()
    }

    /// Returns the number of cores that all PEs share, if they are on one machine.
    pub fn shared_cores(&self) -> Option<u32> {
        let keys = self.keys(false);
        let mut pes = self.request.site.tree.pes();
        let first = keys[pes.next()?.index()].as_ref()?;
        let are_one = pes.all(|pe| keys[pe.index()].as_ref() == Some(first));
        are_one.then(|| first.cores())
    }
}
