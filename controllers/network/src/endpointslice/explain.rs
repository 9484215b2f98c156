//! Explanations of plans for operators.

use super::plan::Plan;

impl Plan {
    pub(super) fn explain(&self) -> String {
        let count = |of: fn(&super::hints::FamilySlices) -> usize| -> usize {
            self.families.iter().map(|family| of(&family.slices)).sum()
        };
        let create = count(|slices| slices.create.len());
        let update = count(|slices| slices.update.len());
        let delete = count(|slices| slices.delete.len()) + self.foreign.len();
        let endpoints = self.efficiency.endpoints;
        let mut text = if create + update + delete == 0 {
            format!("leaves its slices as they are, as they have the {endpoints} endpoints that are wanted")
        } else {
            format!("creates {create}, updates {update} and deletes {delete} slices: {endpoints} endpoints are wanted")
        };
        if let Some((pod, node)) = self.without_node.first() {
            let pods = self.without_node.len();
            text.extend([
                "; leaves out ",
                &pods.to_string(),
                " pods, such as ",
                pod,
                ", whose node ",
                node,
                " does not exist",
            ]);
        }
        text
    }
}
