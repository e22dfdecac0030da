"""The HEPData files that neb writes, against HEPData's own validator.

`make test` builds the example that writes them and makes the virtual environment; without either the test is skipped.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest
import warnings

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

try:
    from hepdata_validator.full_submission_validator import FullSubmissionValidator
except ImportError:
    FullSubmissionValidator = None


EXAMPLE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "debug", "examples", "hepdata")


def write_submission(folder):
    """The example `hepdata` of neb-data writes it."""
    subprocess.run([EXAMPLE, folder], check=True, stdout=subprocess.DEVNULL)


@unittest.skipIf(FullSubmissionValidator is None, "hepdata-validator is not installed: see tests/hepdata/setup")
@unittest.skipUnless(EXAMPLE.exists(), "build the examples first: cargo build --workspace --all-targets")
class Submission(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        write_submission(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def validate(self):
        # The validator leaves the files it reads to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        validator = FullSubmissionValidator()
        accepted = validator.validate(directory=self.folder.name)
        messages = [error.message for errors in validator.get_messages().values() for error in errors]
        tables = {kind.value: files for kind, files in validator.valid_files.items()}
        return accepted, messages, tables.get("data", [])

    def test_accepted(self):
        accepted, messages, tables = self.validate()
        self.assertTrue(accepted, messages)
        self.assertEqual(messages, [])
        # Two spectra; three covariances with their correlations.
        self.assertEqual(len(tables), 8, tables)

    def test_a_damaged_table_is_not(self):
        table = pathlib.Path(self.folder.name, "mass.yaml")
        table.write_text(table.read_text().replace("independent_variables", "variables"))
        accepted, messages, _ = self.validate()
        self.assertFalse(accepted)
        self.assertTrue(any("mass.yaml" in message for message in messages), messages)


if __name__ == "__main__":
    unittest.main()
