//! What every learned conditional density q(v|c) can do on a tile of 16 rows.

use crate::Rows;
use crate::kernel::Lane;
use crate::nn::parameters::Layout;

/// A conditional density with parameters, in standardised units.
pub(crate) trait ConditionalDensity: Send + Sync {
    /// Scratch memory of one thread, and its sums of weight gradients.
    type Workspace: Send;

    /// Dimension of v.
    fn dim(&self) -> usize;

    /// Dimension of the context c.
    fn context(&self) -> usize;

    /// Names and shapes of the parameters.
    fn layout(&self) -> &Layout;

    /// The parameters.
    fn parameters(&self) -> &[f32];

    /// The parameters, to change; [`ConditionalDensity::refresh`] must follow.
    fn parameters_mut(&mut self) -> &mut [f32];

    /// Brings derived data (packed weights) up to date with the parameters.
    fn refresh(&mut self);

    /// Scratch memory for one thread.
    fn workspace(&self) -> Self::Workspace;

    /// Lanes of what depends on the context alone.
    fn share_len(&self) -> usize;

    /// What depends on the context alone.
    fn share(&self, context: &[Lane], share: &mut [Lane], workspace: &mut Self::Workspace);

    /// log q(v|c), lane by lane, from the context's share.
    fn log_prob_shared(&self, v: &[Lane], share: &[Lane], workspace: &mut Self::Workspace) -> Lane;

    /// log q(v_i|c) for every row v_i broadcast to all lanes, from the contexts' share.
    fn log_prob_rows(
        &self,
        rows: Rows,
        share: &[Lane],
        workspace: &mut Self::Workspace,
        out: &mut [Lane],
    ) {
        let mut v = vec![Lane::ZERO; self.dim()];
        for (row, out) in out.iter_mut().enumerate() {
            for (lane, &value) in v.iter_mut().zip(rows.row(row)) {
                lane.0.fill(value);
            }
            *out = self.log_prob_shared(&v, share, workspace);
        }
    }

    /// The gradient with respect to the context, summed over all (v, weight) that `few` fills in until it says no.
    ///
    /// Only for densities whose pass over v is much cheaper than their share; the others return false and do nothing.
    fn gradient_of_few(
        &self,
        _context: &[Lane],
        _few: &mut dyn FnMut(&mut [Lane], &mut Lane) -> bool,
        _workspace: &mut Self::Workspace,
        _d_context: &mut [Lane],
    ) -> bool {
        false
    }

    /// log q(v|c), lane by lane.
    fn log_prob(&self, v: &[Lane], context: &[Lane], workspace: &mut Self::Workspace) -> Lane;

    /// log q(v|c), and the gradient of Σ_lanes weight · log q: overwrites `d_v` and `d_context`; with `learn`
    /// also adds to the weight gradients kept in the workspace.
    #[expect(clippy::too_many_arguments, reason = "inputs and outputs of one pass")]
    fn log_prob_backward(
        &self,
        v: &[Lane],
        context: &[Lane],
        weight: &Lane,
        workspace: &mut Self::Workspace,
        d_v: &mut [Lane],
        d_context: &mut [Lane],
        learn: bool,
    ) -> Lane;

    /// Adds the weight gradients kept in the workspace to a flat gradient and clears them.
    fn collect_gradient(&self, workspace: &mut Self::Workspace, flat: &mut [f32]);

    /// Turns standard normal noise (and a uniform number, where a component must be chosen) into draws.
    fn sample(
        &self,
        noise: &mut [Lane],
        choice: &Lane,
        context: &[Lane],
        workspace: &mut Self::Workspace,
    );
}
