"""A small GPT: causal attention over characters, the output layer tied to the embedding."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from torch import Tensor, nn


class Block(nn.Module):
    """Attention to what came before, then a layer for each position; norms before, sums after.

    Args:
        width: Of a position; a multiple of the heads.
        heads: Of attention.
        dropout: Of what is added.
    """

    def __init__(self, width: int, *, heads: int, dropout: float) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width ({width}) must be a multiple of heads ({heads})")
        self.heads = heads
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """float [N, T, width] to the same."""
        hidden = hidden + self.dropout(self.out(self._attended(self.before_attention(hidden))))
        inner = F.gelu(self.wide(self.before_layers(hidden)))
        return hidden + self.dropout(self.narrow(inner))

    def _attended(self, hidden: Tensor) -> Tensor:
        parts = self.into(hidden).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return found.transpose(1, 2).flatten(2)


class GPT(nn.Module):
    """Predicts each position's character from those before it.

    Args:
        size: Indices there are, marks included.
        length: Positions at most.
        width, heads, blocks, dropout: See `Block`.
    """

    def __init__(
        self, size: int, *, length: int, width: int, heads: int, blocks: int, dropout: float
    ) -> None:
        super().__init__()
        self.characters, self.places = nn.Embedding(size, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(
            Block(width, heads=heads, dropout=dropout) for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, size, bias=False)
        self.head.weight = self.characters.weight  # tied: Press and Wolf 2017, arXiv:1608.05859
        for table in (self.characters, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Score N passages.

        Args:
            tokens: int64 [N, T], shifted by one.

        Returns:
            Logits, float [N, T, size].
        """
        places = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.characters(tokens) + self.places(places)
        for block in self.blocks:
            hidden = block(hidden)
        logits: Tensor = self.head(self.norm(hidden))
        return logits
