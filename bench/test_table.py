"""The verdicts of the table, on made-up figures (no PyTorch needed)."""

import unittest

from table import FORWARD_FLOPS, PEAK_FLOPS, rows


def by_work(figures, cases):
    return {row.work: row for row in rows(figures, cases)}


class Verdicts(unittest.TestCase):
    def test_ratio_is_pytorch_over_neb_and_tuned_is_the_faster_form(self):
        figures = {
            ("torch", "pairs_dense", 1): 0.40,
            ("torch", "pairs_sparse", 1): 0.20,
            ("neb", "pairs", 1): 0.02,
        }
        row = by_work(figures, {"pairs"})["pairs (against pairs_tuned)"]
        self.assertAlmostEqual(row.value, 10.0)
        self.assertFalse(row.missed)

    def test_slower_than_the_target_is_missed(self):
        figures = {("torch", "train_epoch", 1): 0.30, ("neb", "train_epoch", 1): 0.05}
        self.assertTrue(by_work(figures, {"train_epoch"})["train_epoch"].missed)

    def test_what_was_not_measured_is_missed(self):
        row = by_work({}, {"train_epoch"})["train_epoch"]
        self.assertTrue(row.missed)
        self.assertIn("not measured", row.cells()[-1])

    def test_share_of_peak_counts_operations_per_second(self):
        # The product takes 1 s; the pairs at the same speed would take FORWARD / PEAK seconds.
        at_peak = FORWARD_FLOPS / PEAK_FLOPS
        figures = {("torch", "peak", 1): 1.0, ("neb", "pairs_forward", 1): 2 * at_peak}
        row = by_work(figures, {"pairs_forward"})["pairs_forward, share of peak, neb"]
        self.assertAlmostEqual(row.value, 0.5)
        self.assertTrue(row.missed)

    def test_forward_operations_by_hand(self):
        # 131 072 pairs x 8 networks x 2600 multiply-adds, and 1024 x 8 x 100 for x's share.
        self.assertEqual(FORWARD_FLOPS, 2 * (131_072 * 8 * 2_600 + 1_024 * 8 * 100))


if __name__ == "__main__":
    unittest.main()
