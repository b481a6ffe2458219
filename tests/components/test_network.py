"""The way from one machine to another, asked of this machine's own interfaces."""

from __future__ import annotations

import socket

import pytest

from components.train_distributed.network import answers, interface_of, own_name, way_to


def test_the_way_to_this_machine_is_its_loopback() -> None:
    assert way_to("127.0.0.1", 29500) == ("127.0.0.1", "lo")
    assert interface_of("127.0.0.1") == "lo"


def test_the_way_elsewhere_is_not() -> None:
    try:
        way = way_to("192.0.2.1", 29500)  # no host: nothing is sent
    except OSError:
        pytest.skip("this machine has no route to anywhere")
    assert way.interface not in ("", "lo")
    assert interface_of(way.address) == way.interface


def test_an_address_of_nobody_has_no_interface() -> None:
    assert interface_of("192.0.2.1") == ""
    assert interface_of("2001:db8::1") == ""


def test_a_name_that_is_not_known_yet_is_an_error_of_the_system() -> None:
    with pytest.raises(socket.gaierror):
        way_to("job-node-0-0.job.invalid", 29500)
    assert not answers("job-node-0-0.job.invalid", 29500)


def test_only_where_something_listens_there_is_an_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert answers("127.0.0.1", port)
    assert not answers("127.0.0.1", port)


def test_a_pod_has_a_name_beside_node_0s_if_that_leads_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {"job-node-0-1.job": "10.1.2.3"}
    monkeypatch.setattr(socket, "gethostname", lambda: "job-node-0-1")

    def resolve(name: str, port: object) -> list[object]:
        if name not in known:
            raise socket.gaierror(name)
        return [(0, 0, 0, "", (known[name], 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert own_name("job-node-0-0.job", "10.1.2.3") == "job-node-0-1.job"
    assert own_name("job-node-0-0.job", "10.9.9.9") == "", "it leads elsewhere"
    assert own_name("job-node-0-0.other", "10.1.2.3") == "", "it is not known"
    assert own_name("10.1.2.1", "10.1.2.3") == ""
    assert own_name("host", "10.1.2.3") == ""
