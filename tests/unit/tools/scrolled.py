"""Scrolls a page in headless Chromium and counts the frames that it shows, in the browser's own trace.

    scrolled.py BROWSER PAGE.html MIN_FRAMES_PER_SECOND

Speaks the browser's DevTools protocol over a pipe, so that no other package is needed. A frame counts when the compositor
has drawn it. Prints the rate and the longest time without a new frame; exits with 1 below the wanted rate.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

GESTURES, PIXELS, SPEED = 4, 3000, 600  # there and back; pixels a second


class Browser:
    def __init__(self, program, profile):
        to_browser, self.out = os.pipe()
        self.input, from_browser = os.pipe()

        def on_3_and_4():
            os.dup2(to_browser, 60)
            os.dup2(from_browser, 61)
            os.dup2(60, 3)
            os.dup2(61, 4)

        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--window-size=1280,480"]
        self.process = subprocess.Popen([program, *flags, "about:blank"], preexec_fn=on_3_and_4, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.number, self.events = b"", 0, []

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.input, 1 << 20)
            if not more:
                raise SystemExit("the browser has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, session=None, **arguments):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": arguments}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def await_event(self, method):
        while True:
            for event in self.events:
                if event.get("method") == method:
                    self.events.remove(event)
                    return event["params"]
            self.events.append(self.read())


def scroll(browser, page):
    target = browser.ask("Target.createTarget", url=page.as_uri())["targetId"]
    session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for _ in range(200):
        ready = browser.ask("Runtime.evaluate", session, expression="document.body && document.body.dataset.ready === 'yes'")
        if ready["result"].get("value"):
            break
        time.sleep(0.05)
    else:
        raise SystemExit(f"{page} does not become ready")
    height = browser.ask("Runtime.evaluate", session, expression="document.documentElement.scrollHeight - innerHeight")["result"]["value"]
    if height < 200:
        raise SystemExit(f"{page.name} is too short to scroll: {height} pixels")
    distance = min(PIXELS, height)
    browser.ask("Tracing.start", session, transferMode="ReportEvents", traceConfig={"includedCategories": ["disabled-by-default-devtools.timeline.frame", "devtools.timeline.frame", "blink.user_timing"]})
    for number in range(GESTURES):
        browser.ask("Runtime.evaluate", session, expression=f"performance.mark('begin{number}')")
        browser.ask("Input.synthesizeScrollGesture", session, x=600, y=240, yDistance=-distance if number % 2 == 0 else distance, speed=SPEED, gestureSourceType="mouse")
        browser.ask("Runtime.evaluate", session, expression=f"performance.mark('end{number}')")
    browser.ask("Tracing.end", session)
    events = []
    browser.await_event("Tracing.tracingComplete")
    for event in browser.events:
        if event.get("method") == "Tracing.dataCollected":
            events += event["params"]["value"]
    return height, events


def main():
    program, page, wanted = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), float(sys.argv[3])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            height, events = scroll(browser, page)
        finally:
            browser.process.terminate()
            browser.process.wait()
    marks = {event["name"]: event["ts"] for event in events if event["name"].startswith(("begin", "end"))}
    drawn = sorted(event["ts"] for event in events if event["name"] == "DrawFrame")
    worst, longest, shown = float("inf"), 0.0, 0
    for number in range(GESTURES):
        inside = [at for at in drawn if marks[f"begin{number}"] <= at <= marks[f"end{number}"]]
        if len(inside) < 2:
            raise SystemExit(f"gesture {number} drew {len(inside)} frames of a page that scrolls by {height} pixels: {sorted({event['name'] for event in events})}")
        worst = min(worst, (len(inside) - 1) / (inside[-1] - inside[0]) * 1e6)
        longest = max(longest, *(b - a for a, b in zip(inside, inside[1:])))
        shown += len(inside)
    print(f"{page.name}: {shown} frames in {GESTURES} gestures over {height:.0f} pixels, at least {worst:.1f} a second, at most {longest / 1000:.1f} ms without a new one")
    return 0 if worst >= wanted else 1


sys.exit(main())
