"""``designopt desk``: what its page in the documentation shows, and how it ends."""

import http.client
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from command import designopt as command

PAGE = (Path(__file__).parents[2] / "docs" / "desk.md").read_text(encoding="utf-8")
PATIENCE = 120


@pytest.mark.parametrize("line", re.findall(r"```sh\n(.*?)\n```", PAGE))
def test_the_page_is_served_until_the_command_is_stopped(line, tmp_path):
    (tmp_path / "results").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = [str(port) if word == "8123" else word for word in shlex.split(line)[1:]]
    words = [sys.executable, "-m", "designopt", *arguments, *([] if "--no-browser" in arguments else ["--no-browser"])]
    desk = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://127\.0\.0\.1:(\d+)(/\?token=\S+)", desk.stdout.readline())
        assert address is not None
        if "--port" in arguments:
            assert int(address[1]) == port
        connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=PATIENCE)
        origin = f"http://127.0.0.1:{address[1]}"
        body = json.dumps({"token": address[2].partition("token=")[2]})
        connection.request("POST", "/enter", body, {"Origin": origin, "Content-Type": "application/json"})
        assert connection.getresponse().status == 200
        connection.close()
        assert "for another browser: http://127.0.0.1" in desk.stdout.readline()
    finally:
        desk.send_signal(signal.SIGINT)
        out, err = desk.communicate(timeout=PATIENCE)
    assert (desk.returncode, err) == (0, "")
    assert out == "the desk is closed; runs continue\n"


def test_a_folder_that_is_none_and_a_port_that_is_taken_are_refused(tmp_path):
    refused = command(tmp_path, "desk", "nowhere")
    assert (refused.returncode, refused.stderr) == (2, "error: the folder 'nowhere' does not exist\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        refused = command(tmp_path, "desk", "--no-browser", "--port", port)
    assert refused.returncode == 4
    assert refused.stderr.startswith(f"error: port {port}: ")
