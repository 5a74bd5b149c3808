"""Headless Chromium, and which part of it is missing here."""

import os
import shutil

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


def missing():
    """What the tests need and do not find; empty if nothing."""
    try:
        import axe_core_python  # noqa: F401
        import selenium  # noqa: F401
        libraries = ""
    except ImportError as error:
        libraries = f"the Python package {error.name}"
    return next(filter(None, ["" if CHROMIUM else "chromium", "" if DRIVER else "chromium-driver", libraries]),
                "")


def start(width=1440, height=1000):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    flags = [
        "--headless=new", f"--window-size={width},{height}", "--force-device-scale-factor=1",
        "--disable-dev-shm-usage"
    ]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # which root cannot have
    for flag in flags:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))
