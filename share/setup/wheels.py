"""Downloads wheels and unpacks them into one folder, as into site-packages.

    wheels.py FOLDER [NAME] < list        one line "bytes sha256 file" per wheel; NAME is printed, by default LibTorch

After an interruption the same call resumes: a download in FOLDER/NAME.part is continued, and a wheel counts as unpacked only
when its dist-info is there, which is written last. The URLs come from pip, so that its settings (index, mirror, certificates)
apply. The transfer is implemented here because pip restarts an interrupted one from the beginning.
"""

import hashlib
import os
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile

BLOCK = 1 << 20


class Progress:
    """A progress line: redrawn on a terminal, printed once for each quarter into a log."""

    def __init__(self, total, name):
        self.total, self.name, self.done, self.fetched = total, name, 0, 0
        self.start = self.drawn = time.monotonic()
        self.quarters = 0  # that were printed into a log
        if not sys.stderr.isatty():
            print(f"hortator: {name}: downloading {total >> 20} MiB", file=sys.stderr, flush=True)

    def advance(self, size, fetched=True):
        self.done += size
        self.fetched += size if fetched else 0
        if sys.stderr.isatty():
            if time.monotonic() - self.drawn > 0.2:
                self.draw("\r")
        elif self.quarters < min(3, 4 * self.done // self.total):
            self.quarters = min(3, 4 * self.done // self.total)
            self.draw()
            print(file=sys.stderr)

    def draw(self, start=""):
        self.drawn = time.monotonic()
        speed = self.fetched / max(self.drawn - self.start, 1e-3)
        text = f"hortator: {self.name}: {self.done >> 20} of {self.total >> 20} MiB, {speed / 1e6:.0f} MB/s"
        print(f"{start}{text:70}", end="", file=sys.stderr, flush=True)

    def close(self):
        self.draw("\r" if sys.stderr.isatty() else "")
        print(file=sys.stderr)


def pip(*arguments):
    return subprocess.run([sys.executable, "-m", "pip", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, universal_newlines=True)


def address(wheel):
    """The URL from which pip would download the wheel, or None: `pip index -vv` prints every link that it inspects."""
    listing = pip("--disable-pip-version-check", "index", "versions", "-vv", wheel.split("-")[0]).stdout
    links = re.findall(r"\b((?:https?|file)://\S+/" + re.escape(wheel) + r")(?=[#\s])", listing)
    return links[0] if links else None


def certificates():
    for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        if os.environ.get(name):
            return ssl.create_default_context(cafile=os.environ[name])
    return ssl.create_default_context()


def transfer(url, part, size, progress):
    """Continues `part` up to `size` bytes, with up to five attempts. Raises OSError."""
    for attempt in range(5):
        have = os.path.getsize(part) if os.path.exists(part) else 0
        if have >= size:
            return
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
        try:
            with urllib.request.urlopen(request, timeout=60, context=certificates()) as answer:
                whole = getattr(answer, "status", 200) != 206  # the server ignored Range and sends the whole file
                if whole:
                    progress.done -= have
                with open(part, "wb" if whole else "ab") as file:
                    for block in iter(lambda: answer.read(BLOCK), b""):
                        file.write(block)
                        progress.advance(len(block))
        except OSError as error:
            if attempt == 4:
                raise
            if isinstance(error, urllib.error.HTTPError) and error.code == 416:
                os.remove(part)
            time.sleep(1 << attempt)
    raise OSError("the connection was closed early in 5 attempts")


def download_by_pip(wheel, folder):
    """Fallback for an index that needs a password or a setting that only pip knows."""
    name, version, python, abi, platforms = wheel[: -len(".whl")].split("-")
    interpreter = ["--implementation", "cp", "--python-version", python[2:], "--abi", abi] if abi != "none" else []
    tags = [argument for tag in platforms.split(".") for argument in ("--platform", tag)]
    result = pip("download", "--quiet", "--no-deps", "--only-binary=:all:", *interpreter, *tags, "--dest", folder, f"{name}=={version}")
    if result.returncode != 0:
        raise OSError(result.stdout.strip().splitlines()[-1] if result.stdout.strip() else "pip failed")


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def download(wheel, size, digest, folder, progress):
    path, part = os.path.join(folder, wheel), os.path.join(folder, wheel + ".part")
    if os.path.exists(path):  # the checksum was verified before the file got this name
        progress.advance(size, fetched=False)
        return path
    progress.advance(os.path.getsize(part) if os.path.exists(part) else 0, fetched=False)
    before = progress.done
    url = address(wheel)
    try:
        if url is None:
            raise OSError("pip prints no URL")
        transfer(url, part, size, progress)
    except OSError:
        progress.done = before
        download_by_pip(wheel, folder)
        os.replace(path, part)
    if sha256(part) != digest:
        os.remove(part)
        raise OSError("its checksum is not the pinned one, so it was removed")
    os.replace(part, path)
    return path


def unpack(path, folder):
    with zipfile.ZipFile(path) as archive:
        members = sorted(archive.infolist(), key=lambda m: (".dist-info/" in m.filename, m.filename.endswith("/RECORD")))
        for member in members:
            # removed, not overwritten: a program may still have the old file open
            target = os.path.join(folder, member.filename)
            if os.path.isfile(target):
                os.remove(target)
            archive.extract(member, folder)
            mode = member.external_attr >> 16 & 0o777
            if mode and not member.is_dir():
                os.chmod(target, mode | 0o600)
            if not member.is_dir():  # keep the wheel's times: otherwise unpacking it again would make every object file out of date
                moment = time.mktime(member.date_time + (0, 0, -1))
                os.utime(target, (moment, moment))
    os.remove(path)


def main():
    folder = sys.argv[1]
    wheels = [line.split() for line in sys.stdin if line.strip()]
    os.makedirs(folder, exist_ok=True)
    progress = Progress(sum(int(size) for size, _, _ in wheels), sys.argv[2] if len(sys.argv) > 2 else "LibTorch")
    for size, digest, wheel in wheels:
        try:
            path = download(wheel, int(size), digest, folder, progress)
        except OSError as error:
            progress.close()
            sys.exit(f"hortator: Cannot download '{wheel}': {error}. To resume, run the same command again")
        unpack(path, folder)
    progress.close()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        sys.exit(130)
