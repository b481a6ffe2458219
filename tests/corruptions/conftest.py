"""A clean feed for each test, from one template."""

from __future__ import annotations

import pytest

from tests.corruptions.project import Feed, Template


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Three months with a champion."""
    return Template(tmp_path_factory.mktemp("deliveries"))


@pytest.fixture
def feed(template: Template) -> Feed:
    """The fourth month has arrived, clean."""
    return template.arrive()
