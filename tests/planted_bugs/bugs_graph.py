"""Outputs that depend on what they must not, or do not depend on what they must."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.planted_bugs import (
    healthy_bag_of_words,
    healthy_categories,
    healthy_digits,
    healthy_gru,
    healthy_language_model,
    healthy_multilabel,
    healthy_rare,
    healthy_regression,
    healthy_residual,
    healthy_tagger,
    healthy_transformer,
)
from tests.planted_bugs.planting import Theme
from tests.planted_bugs.preprocessors import PAD

GRAPH = Theme("What depends on what")
VIEW = "Karpathy 2018: thinking that view and permute are the same thing"


# ---- across the batch -------------------------------------------------------------------------


@GRAPH.network(
    healthy_gru.HEALTHY,
    "Steps and rows change places by a reshape where a transpose was meant: rows are mixed.",
    found_by=("rows_do_not_mix",),
    seen=VIEW,
)
class RowsMixedByAReshape(healthy_gru.Network):
    def forward(self, series: Tensor) -> Tensor:
        rows, steps, channels = series.shape
        return super().forward(series.reshape(steps, rows, channels).transpose(0, 1))


@GRAPH.built(
    healthy_tagger.HEALTHY,
    "A GRU without batch_first reads the batch as the sequence.",
    found_by=("rows_do_not_mix",),
    seen="Humbatova et al. 2020, wrong shape of input; torch's GRU reads [steps, rows] by itself",
)
def batch_read_as_the_sequence(model: nn.Module) -> None:
    model.before.batch_first = False


@GRAPH.network(
    healthy_multilabel.HEALTHY,
    "Inputs are centred with the mean of the batch they come in.",
    found_by=("rows_do_not_mix",),
)
class CentredByTheBatch(type(healthy_multilabel.Faults().build_model(None))):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return super().forward(categories, numbers - numbers.mean(0))


@GRAPH.built(
    healthy_digits.HEALTHY,
    "BatchNorm keeps no running statistics: predictions depend on the rows that come with one.",
    found_by=("rows_do_not_mix",),
)
def statistics_of_the_batch_served(model: nn.Module) -> None:
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.track_running_stats = False
            norm.running_mean = norm.running_var = None


@GRAPH.network(
    healthy_transformer.HEALTHY,
    "Words are weighted by a softmax over the batch and not over the words.",
    found_by=("rows_do_not_mix",),
    seen="Karpathy 2018, axes mixed up",
)
class WordsWeightedOverTheBatch(healthy_transformer.Network):
    def pooled(self, hidden: Tensor, real: Tensor) -> Tensor:
        weights = hidden.mean(2).masked_fill(~real, -1e4).softmax(0)
        return (hidden * weights.unsqueeze(2)).sum(1)


# ---- along the sequence -----------------------------------------------------------------------


class _Unmasked(healthy_language_model.Block):
    def attention(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(query, key, value)


class _OneTooFar(healthy_language_model.Block):
    def attention(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        steps = query.shape[2]
        mask = torch.ones(steps, steps, dtype=torch.bool).tril(diagonal=1)
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


class _OverQueries(healthy_language_model.Block):
    def attention(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = query @ key.transpose(2, 3) / query.shape[3] ** 0.5
        later = torch.ones(scores.shape[2:], dtype=torch.bool).triu(diagonal=1)
        return scores.masked_fill(later, -1e4).softmax(2) @ value


def _blocks(model: nn.Module, kind: type[nn.Module]) -> None:
    for block in model.blocks:
        block.__class__ = kind


@GRAPH.built(
    healthy_language_model.HEALTHY,
    "Attention without its causal mask: every character sees those that it has to predict.",
    found_by=("future_does_not_reach_past",),
    seen="Karpathy 2019, backprop to chart dependencies",
)
def causal_mask_forgotten(model: nn.Module) -> None:
    _blocks(model, _Unmasked)


@GRAPH.built(
    healthy_language_model.HEALTHY,
    "The causal mask lets each character see one too many.",
    found_by=("future_does_not_reach_past",),
    seen="Karpathy 2019, off by one in an autoregressive model",
)
def causal_mask_one_too_far(model: nn.Module) -> None:
    _blocks(model, _OneTooFar)


@GRAPH.built(
    healthy_language_model.HEALTHY,
    "Attention's softmax goes over the queries and not over the keys.",
    found_by=("future_does_not_reach_past",),
    seen="Karpathy 2018, axes mixed up",
)
def softmax_over_the_queries(model: nn.Module) -> None:
    _blocks(model, _OverQueries)


@GRAPH.network(
    healthy_transformer.HEALTHY,
    "Attention without its padding mask: words attend to places where there is none.",
    found_by=("padding_counts_for_nothing",),
    seen="Humbatova et al. 2020, missing masking of invalid values",
)
class PaddingAttendedTo(healthy_transformer.Network):
    def real(self, tokens: Tensor) -> Tensor:
        return torch.ones_like(tokens, dtype=torch.bool)


@GRAPH.network(
    healthy_bag_of_words.HEALTHY,
    "The mask is the wrong way round: the words are zeroed and the padding stays.",
    found_by=("inputs_reach_outputs", "inputs_help", "padding_counts_for_nothing"),
    seen="Humbatova et al. 2020, missing masking of invalid values",
)
class MaskTheWrongWayRound(healthy_bag_of_words.Bag):
    def mean(self, tokens: Tensor) -> Tensor:
        real = (tokens == PAD).unsqueeze(2).float()
        return (self.words(tokens) * real).sum(1) / real.sum(1).clamp_min(1)


# ---- from the inputs --------------------------------------------------------------------------


@GRAPH.network(
    healthy_regression.HEALTHY,
    "Half of the columns never reach the first layer: a slice of another version of the table.",
    found_by=("inputs_reach_outputs",),
    seen="Humbatova et al. 2020, wrong selection of features",
)
class HalfOfTheColumnsUnused(type(healthy_regression.Rent().build_model(None))):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        used = torch.zeros_like(numbers)
        used[:, :3] = numbers[:, :3]
        return super().forward(categories, used)


@GRAPH.network(
    healthy_categories.HEALTHY,
    "Categories are clamped to an index of 1 so that a lookup does not fail: all are one.",
    found_by=("inputs_reach_outputs", "inputs_help"),
)
class CategoriesClamped(healthy_categories.Network):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return super().forward(categories.clamp(max=1), numbers)


@GRAPH.network(
    healthy_categories.HEALTHY,
    "The embeddings are looked up with the first column's index, every one of them.",
    found_by=("inputs_reach_outputs",),
)
class OneColumnForAll(healthy_categories.Network):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        sizes = torch.tensor([table.num_embeddings for table in self.tables])
        return super().forward(torch.minimum(categories[:, :1], sizes - 1), numbers)


@GRAPH.network(
    healthy_rare.HEALTHY,
    "The network writes into the batch that it is given: the rows shrink with every evaluation.",
    found_by=("evaluation_equals_plain_code", "modes_differ_as_they_should", "rows_do_not_mix"),
    seen="Zhang et al. 2018, An empirical study on TensorFlow program bugs: state changed in place",
)
class BatchWrittenTo(type(healthy_rare.Fraud().build_model(None))):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return super().forward(categories, numbers.mul_(0.98))


# ---- to the weights ---------------------------------------------------------------------------


@GRAPH.network(
    healthy_categories.HEALTHY,
    "The embeddings are detached: they stay what they were drawn as.",
    found_by=("parameters_train",),
    seen="Humbatova et al. 2020; Karpathy 2019, gradients for debugging",
)
class EmbeddingsDetached(healthy_categories.Network):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        embedded = [table(categories[:, i]).detach() for i, table in enumerate(self.tables)]
        return self.layers(torch.cat([*embedded, numbers], 1))


@GRAPH.built(
    healthy_digits.HEALTHY,
    "The backbone was frozen for a first phase and is never unfrozen.",
    found_by=("parameters_train",),
    seen="Humbatova et al. 2020; fine-tuning guides",
    warns=True,
)
def backbone_stays_frozen(model: nn.Module) -> None:
    for layer in model.layers[:-1]:
        layer.requires_grad_(False)


@GRAPH.built(
    healthy_residual.HEALTHY,
    "The blocks are in a list and not in a ModuleList: the optimiser never gets their weights.",
    found_by=("parameters_train", "checkpoint_equals_itself"),
    seen="PyTorch forums; torch documents ModuleList for it",
)
def blocks_in_a_plain_list(model: nn.Module) -> None:
    blocks = list(model.blocks)
    del model.blocks
    model.blocks = blocks


@GRAPH.network(
    healthy_residual.HEALTHY,
    "The second half of the blocks is never called.",
    found_by=("parameters_train",),
    seen="Humbatova et al. 2020, missing layers",
)
class HalfOfTheBlocksNeverCalled(healthy_residual.Network):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.first(numbers)
        for block in self.blocks[: len(self.blocks) // 2]:
            hidden = block(hidden)
        return self.out(self.norm(hidden)).squeeze(1)
