"""Build the wheel and the sdist, install each into an empty environment, and use it there: `make test-wheel`."""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMOKE = """
import asapool, torch
from asapool.nn import ASAPooling
pooled = ASAPooling(4)(torch.randn(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
assert pooled.x.shape == (2, 4) and "site-packages" in asapool.__file__, asapool.__file__
model = asapool.load_model("run")
assert len(model.predict(asapool.load("synthetic:cycles?graphs=12&nodes=6"))) == 12
"""
COMMANDS = (
    "asapool --version",
    "asapool methods",
    "asapool train synthetic:cycles?graphs=12&nodes=6 --epochs 1 --hidden 4 --out run",
    "asapool predict run synthetic:cycles?graphs=12&nodes=6 -o predictions.csv",
    "python -m asapool reproduce -h",
)


def run(*words, cwd):
    """Run a command, and end with what it printed if it fails."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} ended with code {done.returncode}:\n{done.stdout}{done.stderr}")


def main():
    """Both distributions, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
        for built in sorted(Path(folder).glob("asapool-*")):
            if not built.name.endswith((".whl", ".tar.gz")):
                continue
            home = Path(folder, built.name + ".env")
            venv.create(home, with_pip=True)
            print(f"{built.name}: installing into an empty environment", file=sys.stderr, flush=True)
            run(home / "bin/python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", built, cwd=home)
            for command in COMMANDS:
                program, *words = command.split()
                run(home / "bin" / program, *words, cwd=home)
            run(home / "bin/python", "-c", SMOKE, cwd=home)
            print(f"{built.name}: works", file=sys.stderr)


if __name__ == "__main__":
    main()
