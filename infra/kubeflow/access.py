"""By which way and with which credentials Kubeflow is reached: every way that kfp's client knows.

What is secret is never a value here: it is named by the environment variable, or the file, that
holds it. The first of these that is there is taken:

1. a token in the variable `token_env`;
2. cookies in the variable `cookies_env` (`name=value; name=value`, as a browser sends them);
3. a file that Kubernetes keeps fresh: KF_PIPELINES_SA_TOKEN_PATH, else kfp's usual place in a pod;
4. what kfp's client finds by itself: Identity-Aware Proxy (KF_PIPELINES_IAP_OAUTH2_CLIENT_ID and
   its companions), its own context file; without a host also the cluster it runs in, or kubectl's
   configuration.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from infra.errors import OutsideError
from infra.kubeflow.errors import NotAllowed

if TYPE_CHECKING:
    from kfp import Client

TOKEN_ENV = "EVERTRAIN_KUBEFLOW_TOKEN"  # noqa: S105 (the variable's name)
COOKIES_ENV = "EVERTRAIN_KUBEFLOW_COOKIES"
_POD_TOKEN = "/var/run/secrets/kubeflow/pipelines/token"  # noqa: S105 (a path)
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True)
class Access:
    """How to get in.

    Attributes:
        token_env: Variable that holds a bearer token.
        cookies_env: Variable that holds cookies.
        ca: File of certificates to trust; empty: SSL_CERT_FILE, else those of the system's certifi.
        proxy: URL of an HTTP proxy; empty: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as usual.
    """

    token_env: str = TOKEN_ENV
    cookies_env: str = COOKIES_ENV
    ca: str = ""
    proxy: str = ""

    def words(self) -> str:
        """Which credentials are used, for a person."""
        if os.environ.get(self.token_env):
            return f"the token in {self.token_env}"
        if os.environ.get(self.cookies_env):
            return f"the cookies in {self.cookies_env}"
        if token := _token_file():
            return f"the token in {token}"
        if os.environ.get("KF_PIPELINES_IAP_OAUTH2_CLIENT_ID"):
            return "Identity-Aware Proxy (KF_PIPELINES_IAP_OAUTH2_CLIENT_ID)"
        return f"no credentials ({self.token_env}, {self.cookies_env} and the usual files are not)"

    def client(self, host: str) -> Client:
        """Return kfp's client; nothing has been asked of the server yet.

        Args:
            host: URL of the API, or of what it is under (`…/pipeline`); empty: found by kfp.

        Raises:
            NotAllowed: The credentials cannot be read.
            OutsideError: No host is named and none is found.
        """
        import kfp
        import kfp_server_api
        from kfp.client import ServiceAccountTokenVolumeCredentials

        class Client(kfp.Client):  # type: ignore[misc]
            """Asks nothing of the server while it is made, and writes nothing into the home.

            kfp's own waits 20 s for a server that is away, with a traceback a try, and fails where
            the home folder is read-only, as it is in a pod.
            """

            def get_kfp_healthz(self, sleep_duration: int = 5) -> Any:
                return kfp_server_api.V2beta1GetHealthzResponse(multi_user=False)

        token, cookies, file = (
            os.environ.get(self.token_env, "").strip(),
            os.environ.get(self.cookies_env, "").strip(),
            _token_file(),
        )
        credentials = None
        if not token and not cookies and file:
            credentials = ServiceAccountTokenVolumeCredentials(file)
        try:
            with _silent():
                client = Client(
                    host=host or None,
                    existing_token=token or None,
                    cookies=cookies or None,
                    credentials=credentials,
                    ssl_ca_cert=self.ca or os.environ.get("SSL_CERT_FILE") or None,
                    proxy=self.proxy or _usual_proxy(host) or None,
                )
        except OSError as error:
            raise NotAllowed(
                f"the credentials for {host or 'Kubeflow'} cannot be read: {error}",
                hint=f"they are {self.words()}",
            ) from error
        if not host and client._existing_config.host == "http://localhost":
            raise OutsideError(
                "no host of Kubeflow is named, and none was found (not in a cluster, no kubectl)",
                hint="give --host URL, cluster.host in evertrain.yaml, or KF_PIPELINES_ENDPOINT",
            )
        return client


def pod_namespace() -> str:
    """The namespace of the pod that this runs in; empty: it runs in none."""
    try:
        return _POD_NAMESPACE.read_text().strip()
    except OSError:
        return ""


def _token_file() -> str:
    named = os.environ.get("KF_PIPELINES_SA_TOKEN_PATH", "")
    return named or (_POD_TOKEN if Path(_POD_TOKEN).is_file() else "")


def _usual_proxy(host: str) -> str:
    """The proxy of the environment for this host; urllib3 by itself heeds none."""
    parts = urlsplit(host if "://" in host else f"https://{host}")
    if not parts.hostname or proxy_bypass(parts.netloc):
        return ""
    return getproxies().get(parts.scheme, "")


@contextlib.contextmanager
def _silent() -> Any:
    """kfp prints to stdout, which is for data, and warns of what nobody can change."""
    said = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(said):
        warnings.simplefilter("ignore")
        yield
    if "--debug" in sys.argv and said.getvalue():
        print(said.getvalue(), file=sys.stderr)
