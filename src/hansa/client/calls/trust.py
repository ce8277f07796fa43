"""Who may join, and whom everybody trusts: tokens to join, and the hub's authority."""

from hansa.client.operations import Call, operation
from hansa.messages.clusters import NewToken, Token
from hansa.messages.trust import AuthorityState


@operation("POST", "/v1/cluster-tokens")
def create_token(new: NewToken) -> Call[Token]:
    """A token with which one cluster may join; this answer alone shows it."""
    return Call(body=new)


@operation("GET", "/v1/cluster-tokens")
def tokens() -> Call[tuple[Token, ...]]:
    """The tokens that were made, used ones too, without what is secret of them."""
    return Call()


@operation("DELETE", "/v1/cluster-tokens/{token}")
def revoke_token(token: str) -> Call[None]:
    """Nobody joins with this token any more; who joined stays."""
    return Call({"token": token})


@operation("GET", "/v1/authority")
def authority() -> Call[AuthorityState]:
    """The roots of trust, and how many clusters hold certificates of each."""
    return Call()


@operation("POST", "/v1/authority/rotate")
def rotate_root() -> Call[AuthorityState]:
    """Introduces a new root; it follows the active one as soon as all know it."""
    return Call()


@operation("DELETE", "/v1/authority/{root}")
def drop_root(root: str) -> Call[AuthorityState]:
    """Stops trusting a retiring root at once: clusters that still hold certificates of it need new tokens."""
    return Call({"root": root})
