"""Feature extractors compared: each is fitted to the same articles and measured on others.

* **copies**   share of the copies (articles whose label occurred before, in random order) that have an
  earlier article of their label within 3 and 7 bits;
* **false**    neighbors within 3 and 7 bits per article that are no copies, among unseen articles;
* **AUC**      ROC AUC on human-judged pairs, by the cosine of the features and by the bits;
* **related**  recall@10 of the other articles on an event, likewise; the service ranks by terms instead;
* **cost**     processor time per article and for the fit, on one thread; size of the model file and weights.

An extractor whose extra is not installed gets a row with the error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from aggregator.analysis.features import FeatureModel
from aggregator.analysis.models import extractor_class
from aggregator.analysis.simhash import FINGERPRINT_BITS, fingerprint_from_sums
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.domain import Analysis
from aggregator.errors import ConfigurationError
from aggregator.extensions import TFIDF_PCA
from aggregator_lab.evaluation.false_neighbors import RADII, neighbor_pairs
from aggregator_lab.evaluation.metrics import recall_at, roc_auc
from aggregator_lab.extractors.fitting import fit_extractor
from aggregator_lab.extractors.model import FeatureExtractor, Features, FittedModel, StoredExtractor
from aggregator_lab.fit import fit
from aggregator_lab.model_writing import save


class TfidfPcaExtractor:
    """A ``FeatureModel``, as shipped, as an extractor; d = 64, centered, on the axes of the hyperplanes."""

    name: ClassVar[str] = TFIDF_PCA

    def __init__(self, model: FeatureModel) -> None:
        self._model = model

    @property
    def dimensions(self) -> int:
        """Return d."""
        return FINGERPRINT_BITS

    @property
    def package_bytes(self) -> int:
        """Return 0: the model file has everything."""
        return 0

    def transform(self, texts: Sequence[str], languages: Sequence[str]) -> Features:
        """Return (n, 64) float32, whose signs are the bits of the fingerprints."""
        rows = [
            self._model.project(tokenize(text, lang)) for text, lang in zip(texts, languages, strict=True)
        ]
        return np.array(rows, np.float32).reshape(len(texts), FINGERPRINT_BITS)


NEAREST = 10  # of recall@10
ORDERS = 5
_UNKNOWN = FINGERPRINT_BITS + 1  # distance of a text without a known feature


@dataclass(frozen=True, slots=True)
class FeatureData:
    """What extractors are compared on; all texts of one language group.

    corpus      articles to fit to
    background  articles that the fit does not see, without labels
    copies      articles and the label that copies share
    pairs       two articles and whether people judged them alike
    events      articles and the label that articles on one event share
    """

    corpus: Sequence[Analysis]
    background: Sequence[Analysis]
    copies: Sequence[tuple[Analysis, str]]
    pairs: Sequence[tuple[Analysis, Analysis, bool]] = ()
    events: Sequence[tuple[Analysis, str]] = ()


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """One extractor; shares and AUC are 0..1, None without such data.

    ``missing``: why it was not measured. ``cpu_ms``: per article, ``fit_cpu_s``: of the fit.
    """

    features: str
    missing: str = ""
    copies: tuple[float, ...] = ()
    false_neighbors: tuple[float, ...] = ()
    auc_cosine: float | None = None
    auc_bits: float | None = None
    related_cosine: float | None = None
    related_bits: float | None = None
    cpu_ms: float = 0.0
    fit_cpu_s: float = 0.0
    model_mb: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """All values; of an extractor that was not measured only the reason."""
        if self.missing:
            return {"features": self.features, "missing": self.missing}
        return {name: value for name, value in asdict(self).items() if name != "missing"}


class Vectors(NamedTuple):
    """Texts under one model.

    features      (n, d) float32 of L2 norm 1, or zeros
    fingerprints  (n,) uint64
    known         (n,) whether the text has a known feature
    """

    features: Features
    fingerprints: npt.NDArray[np.uint64]
    known: npt.NDArray[np.bool_]

    def distances(self) -> npt.NDArray[np.int16]:
        """Return (n, n) distances in bits; ``_UNKNOWN`` to a text without a known feature."""
        bits: npt.NDArray[np.int16] = np.bitwise_count(
            self.fingerprints[:, None] ^ self.fingerprints[None]
        ).astype(np.int16)
        bits[~self.known] = bits[:, ~self.known] = _UNKNOWN
        return bits


@dataclass(slots=True)
class FittedFeatures:
    """A fitted model of either kind; ``cpu_s`` and ``encoded`` add up over the calls of ``encode``."""

    model: FeatureModel | FittedModel
    cpu_s: float = field(default=0.0, init=False)
    encoded: int = field(default=0, init=False)

    @property
    def extractor(self) -> FeatureExtractor:
        """The features of the model."""
        return self.model.extractor if isinstance(self.model, FittedModel) else TfidfPcaExtractor(self.model)

    def encode(self, analyses: Sequence[Analysis]) -> Vectors:
        """Return the vectors of texts, computed one by one, as for single articles in the service."""
        extractor = self.extractor
        rows = np.zeros((len(analyses), extractor.dimensions), np.float32)
        fingerprints: list[int | None] = []
        started = time.process_time()
        for number, analysis in enumerate(analyses):
            rows[number] = extractor.transform([_text(analysis)], [analysis.lang])[0]
            fingerprints.append(self._fingerprint(rows[number]))
        self.cpu_s += time.process_time() - started
        self.encoded += len(analyses)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return Vectors(
            rows / np.maximum(lengths, 1e-12),
            np.array([fingerprint or 0 for fingerprint in fingerprints], np.uint64),
            np.array([fingerprint is not None for fingerprint in fingerprints], bool),
        )

    def _fingerprint(self, row: npt.NDArray[np.float32]) -> int | None:
        if isinstance(self.model, FittedModel):
            return self.model.fingerprint_of_features(row)
        return fingerprint_from_sums(row) if row.any() else None

    def size_bytes(self) -> int:
        """Return the size of the model file, and of the weights that it needs."""
        with TemporaryDirectory() as directory:
            file = Path(directory) / "fitted.model"
            if isinstance(self.model, FittedModel):
                self.model.save(file)
            else:
                save(self.model, file)
            return file.stat().st_size + self.extractor.package_bytes


def evaluate(data: FeatureData, names: Sequence[str], group: str) -> list[FeatureRow]:
    """One row per extractor. Raises InvalidInput if the corpus is too small, ModelError for unknown names."""
    rows = []
    with threadpool_limits(1):
        for name in names:
            try:
                rows.append(_measure(name, data, group))
            except ConfigurationError as error:
                rows.append(FeatureRow(name, missing=str(error)))
    return rows


def _measure(name: str, data: FeatureData, group: str) -> FeatureRow:
    started = time.process_time()
    fitted = FittedFeatures(_fit(name, data.corpus, group))
    fit_cpu_s = time.process_time() - started
    background = fitted.encode(data.background)
    _, false_pairs = neighbor_pairs(
        [analysis for analysis, known in zip(data.background, background.known, strict=True) if known],
        background.fingerprints[background.known],
    )
    copies = fitted.encode([analysis for analysis, _ in data.copies])
    auc: tuple[float | None, float | None] = (None, None)
    related: tuple[float | None, float | None] = (None, None)
    if data.pairs:
        firsts = fitted.encode([first for first, _, _ in data.pairs])
        seconds = fitted.encode([second for _, second, _ in data.pairs])
        auc = pair_auc(firsts, seconds, [same for _, _, same in data.pairs])
    if data.events:
        events = fitted.encode([analysis for analysis, _ in data.events])
        related = related_recall(events, [label for _, label in data.events], background)
    return FeatureRow(
        name,
        copies=copies_found(copies.distances(), [label for _, label in data.copies]),
        # Either article of a pair has the other as a neighbor.
        false_neighbors=tuple(2 * count / max(1, len(data.background)) for count in false_pairs),
        auc_cosine=auc[0],
        auc_bits=auc[1],
        related_cosine=related[0],
        related_bits=related[1],
        cpu_ms=1_000 * fitted.cpu_s / max(1, fitted.encoded),
        fit_cpu_s=fit_cpu_s,
        model_mb=fitted.size_bytes() / 1e6,
    )


def _fit(name: str, corpus: Sequence[Analysis], group: str) -> FeatureModel | FittedModel:
    if name == TFIDF_PCA:
        return fit((tokenize(_text(item), item.lang) for item in corpus), group).model
    texts, languages = [_text(item) for item in corpus], [item.lang for item in corpus]
    return fit_extractor(cast("type[StoredExtractor]", extractor_class(name)), texts, languages, group)


def _text(analysis: Analysis) -> str:
    return f"{analysis.title}\n{analysis.text}"


def copies_found(distances: npt.NDArray[np.int16], labels: Sequence[str]) -> tuple[float, ...]:
    """Return per radius of ``RADII`` the share of copies with an earlier article of their label in reach.

    ``distances``: (n, n) in bits. Mean of ``ORDERS`` random orders; 0 without copies.
    """
    numbers = np.unique(np.array(labels), return_inverse=True)[1]
    shares = []
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(len(labels))
        earlier = np.tril(numbers[order][:, None] == numbers[order][None], -1)
        copies = earlier.any(axis=1)
        nearest = np.where(earlier, distances[np.ix_(order, order)], _UNKNOWN).min(axis=1, initial=_UNKNOWN)
        shares.append(
            [float((nearest[copies] <= radius).mean()) if copies.any() else 0.0 for radius in RADII]
        )
    return tuple(mean(values) for values in zip(*shares, strict=True))


def pair_auc(firsts: Vectors, seconds: Vectors, same: Sequence[bool]) -> tuple[float, float]:
    """Return the ROC AUC of pairs by the cosine of their features and by the bits that agree."""
    cosines = (firsts.features * seconds.features).sum(axis=1)
    distance = np.bitwise_count(firsts.fingerprints ^ seconds.fingerprints).astype(np.int16)
    agreeing = -np.where(firsts.known & seconds.known, distance, _UNKNOWN)
    return roc_auc(same, cosines.tolist()), roc_auc(same, agreeing.tolist())


def related_recall(events: Vectors, labels: Sequence[str], background: Vectors) -> tuple[float, float]:
    """Return recall@10 of the other articles of each event among all, by cosine and by bits."""
    # In random order, since ties, which are common among 65 distances, rank in the order of the articles.
    order = np.random.default_rng(0).permutation(len(labels) + len(background.known))
    all_labels = np.array([*labels, *[""] * len(background.known)])[order]
    features = np.concatenate([events.features, background.features])[order]
    fingerprints = np.concatenate([events.fingerprints, background.fingerprints])[order]
    known = np.concatenate([events.known, background.known])[order]
    position = np.argsort(order)
    recalls = []
    for number, label in enumerate(labels):
        own = int(position[number])
        relevant = set(np.flatnonzero(all_labels == label).tolist()) - {own}
        if not relevant:
            continue
        distance = np.bitwise_count(fingerprints ^ fingerprints[own]).astype(np.int16)
        scores = -(features @ features[own]), np.where(known & known[own], distance, _UNKNOWN)
        rankings = (np.argsort(score, kind="stable") for score in scores)
        recalls.append([recall_at(r[r != own].tolist(), relevant, NEAREST) for r in rankings])
    by_cosine, by_bits = zip(*recalls, strict=True) if recalls else ((0.0,), (0.0,))
    return mean(by_cosine), mean(by_bits)


def format_table(rows: Sequence[FeatureRow], data: FeatureData) -> str:
    """Table for a terminal: sizes of the data, one line per extractor, the missing ones last."""
    radii = [f"<= {radius}" for radius in RADII]
    heads = [*(f"copies {r}" for r in radii), *(f"false {r}" for r in radii), "AUC cos", "AUC bits"]
    heads += ["related cos", "related bits", "CPU ms", "fit CPU s", "MB"]
    lines = [
        f"fitted to {len(data.corpus):,} articles; {len(data.copies):,} with copies, "
        f"{len(data.background):,} others, {len(data.pairs):,} judged pairs, "
        f"{len(data.events):,} articles on events",
        f"{'features':10}" + "".join(f"{head:>13}" for head in heads),
    ]
    for row in (row for row in rows if not row.missing):
        measures = [*row.copies, *row.false_neighbors, row.auc_cosine, row.auc_bits]
        measures += [row.related_cosine, row.related_bits]
        cells = [f"{'-' if value is None else f'{value:.3f}':>13}" for value in measures]
        cells += [f"{value:13.1f}" for value in (row.cpu_ms, row.fit_cpu_s, row.model_mb)]
        lines.append(f"{row.features:10}" + "".join(cells))
    lines += [f"{row.features:10} not measured: {row.missing}" for row in rows if row.missing]
    return "\n".join(lines)
