"""Take the picture of a report that the documents show.

python docs/pictures/shoot.py runs/RUN/report.html docs/pictures/report.png
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
]  # fmt: skip


def shoot(page: Path, picture: Path, *, width: int, height: int, dark: bool = False) -> None:
    """Write a PNG of the top of a page.

    Raises:
        FileNotFoundError: There is no Chromium.
        subprocess.SubprocessError: It failed or took more than two minutes.
    """
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise FileNotFoundError("chromium is not in PATH")
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, *QUIET, f"--user-data-dir={profile}"]
        command += [f"--window-size={width},{height}", f"--screenshot={picture.resolve()}"]
        command += ["--blink-settings=preferredColorScheme=0"] if dark else []
        subprocess.run(
            [*command, page.resolve().as_uri()],
            check=True, capture_output=True, timeout=120, env={**os.environ, "HOME": profile},
        )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Take the picture of a report.")
    parser.add_argument("page", type=Path, help="the report, an HTML file")
    parser.add_argument("picture", type=Path, help="the PNG to write")
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--height", type=int, default=1400)
    parser.add_argument("--dark", action="store_true", help="as where dark pages are preferred")
    given = parser.parse_args()
    try:
        shoot(given.page, given.picture, width=given.width, height=given.height, dark=given.dark)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no picture was taken: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
