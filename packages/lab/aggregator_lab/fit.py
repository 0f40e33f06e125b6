"""Fit of a feature model to a corpus, offline, with scikit-learn; serving imports none of it.

TF-IDF (``CountVectorizer`` and ``TfidfTransformer`` of scikit-learn) over the index terms of the service, its
principal axes and 64 hyperplanes; everything after the TF-IDF is folded into one matrix:

    x -> centered(x) @ axes.T -> @ hyperplanes   ==   x @ matrix - offset      (64,)
    matrix (V, 64), stored as float16; axes of PCA; the offset is 0

**Centering.** PCA subtracts the corpus mean. A headline, or an article on other subjects, has little in
common with the mean: its constant projection would determine the bits. So only as much of the mean is
subtracted as an article has of it: ``x - (x . m) m`` with m the mean at unit length, which folds into the
matrix.

**Learned hyperplanes** are rotated away from the articles of the corpus (iterative quantization, Gong &
Lazebnik, CVPR 2011). An edit then changes fewer bits, but unrelated articles on one subject share more bits.

``features.FeatureModel`` computes the right-hand side. The same articles in the same order give the same
file, whatever the number of cores; eigenvectors may differ in their last digits between BLAS builds, and so
may single rounded entries.
"""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from aggregator.analysis.features import FeatureModel
from aggregator.analysis.simhash import FINGERPRINT_BITS, hash_signs
from aggregator.analysis.text.language import detect_language, language_group
from aggregator.analysis.text.tokenizer import tokenize, tokenizer_recipe
from aggregator.errors import InvalidInput
from aggregator_archive.input_check import check_columns
from aggregator_archive.rows import column_hint, read_rows
from aggregator_lab.model_writing import check_writable, save

if TYPE_CHECKING:
    from aggregator_lab.extractors.model import FittedModel

Matrix = npt.NDArray[np.float64]

# A term occurs in at least so many articles, and in at most this share of them.
MIN_ARTICLES, MAX_SHARE = 2, 0.5
PCA_ARTICLES = 50_000  # at most, evenly spaced, from which the axes are computed; idf uses all
_RANDOM_STATE = 0  # start vector of the Lanczos iteration
_LANGUAGE_SAMPLE_CHARS = 600
TEXT_FIELDS = ("title", "text", "lang")  # those of an article that are read
_ROTATION_ITERATIONS = 40  # the bits hardly change after 30


@dataclass(frozen=True, slots=True)
class FitSettings:
    """Settings of a fit; the defaults were chosen by measurement (docs/decisions/0015-feature-model.md).

    terms        size of the vocabulary: the terms of most articles, ties in order of code points
    components   principal axes, at least 64 with orthogonal hyperplanes
    hyperplanes  "hashed": +-1 by hashes, as in the paper; "orthogonal": those orthonormalized (QR);
                 "learned": those rotated to fit the corpus (see above)
    """

    terms: int = 30_000
    components: int = 128
    hyperplanes: Literal["hashed", "orthogonal", "learned"] = "orthogonal"

    def __post_init__(self) -> None:
        checks = (
            (self.terms >= FINGERPRINT_BITS, f"terms must be at least {FINGERPRINT_BITS}, not {self.terms}"),
            (self.components >= 1, f"components must be at least 1, not {self.components}"),
            (
                self.hyperplanes in ("hashed", "orthogonal", "learned"),
                f"hyperplanes must be hashed, orthogonal or learned, not {self.hyperplanes!r}",
            ),
            (
                self.hyperplanes == "hashed" or self.components >= FINGERPRINT_BITS,
                f"{FINGERPRINT_BITS} orthogonal hyperplanes need at least {FINGERPRINT_BITS} components, "
                f"not {self.components}; --hyperplanes hashed takes fewer",
            ),
        )
        problems = [text for is_valid, text in checks if not is_valid]
        if problems:
            raise InvalidInput("Settings of the fit: " + "; ".join(problems) + ".")


@dataclass(frozen=True, slots=True, eq=False)
class FitResult:
    """A model and the intermediate results of its fit.

    axes         (components, V) unit rows, highest variance first
    mean         (V,) of the corpus, at unit length
    hyperplanes  (components, 64)
    """

    model: FeatureModel
    settings: FitSettings
    tfidf: TfidfTransformer
    axes: Matrix
    mean: Matrix
    hyperplanes: Matrix


def fit(
    token_lists: Iterable[Sequence[str]],
    group: str,
    settings: FitSettings | None = None,
    *,
    metadata: Mapping[str, Any] | None = None,
) -> FitResult:
    """Fit a model to articles, given as the index terms of ``tokenizer.tokenize``; read once, in order.

    ``metadata`` describes the corpus; article count and settings are added to it. Raises InvalidInput if
    there are too few articles or shared terms for the settings.
    """
    settings = settings or FitSettings()
    counts, vocabulary = count_terms(token_lists, group, settings)
    _check_corpus_size(counts.shape, group, settings)
    tfidf = TfidfTransformer(sublinear_tf=True)
    x = tfidf.fit_transform(counts)
    # One thread: sums of BLAS depend on the number of threads, and sparse products use one anyway.
    with threadpool_limits(1):
        rows = min(x.shape[0], PCA_ARTICLES)
        sampled = x[np.arange(rows) * x.shape[0] // rows]
        # Lanczos iteration, for which the centered matrix need not be dense.
        pca = PCA(settings.components, svd_solver="arpack", random_state=_RANDOM_STATE).fit(sampled)
        axes, mean = pca.components_, np.asarray(pca.mean_).ravel()
        mean /= np.linalg.norm(mean)
        normals = initial_hyperplanes(settings)
        if settings.hyperplanes == "learned":
            projected = np.asarray(sampled @ axes.T - np.outer(sampled @ mean, axes @ mean))
            normals = _rotate_hyperplanes(normals, projected)
    matrix = axes.T @ normals
    model = FeatureModel(
        group,
        vocabulary,
        tfidf.idf_.astype("<f4"),
        (matrix - np.outer(mean, mean @ matrix)).astype("<f2").astype("<f4"),
        np.zeros(FINGERPRINT_BITS),
        tokenizer_recipe(group),
        metadata={**(metadata or {}), "articles": counts.shape[0], "settings": asdict(settings)},
    )
    return FitResult(model, settings, tfidf, axes, mean, normals)


def fit_file(
    paths: Sequence[Path | str],
    group: str,
    out: Path | str,
    settings: FitSettings | None = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
    columns: Sequence[tuple[str, str]] = (),
) -> FitResult:
    """Fit a model to the articles of ``group`` in files as for ``rows.read_rows``, and save it as ``out``.

    Rows have ``title``, ``text`` (at least one not empty) and ``lang`` (else detected). ``progress`` gets
    the number of articles used so far. Raises InvalidInput or ModelError.
    """
    check_writable(Path(out), makes_directory=True)
    texts = texts_of_group(paths, group, columns, progress)
    token_lists = (tokenize(text, lang) for text, lang in texts)
    fitted = fit(token_lists, group, settings, metadata=metadata)
    save(fitted.model, out)
    return fitted


def texts_of_group(
    paths: Sequence[Path | str],
    group: str,
    columns: Sequence[tuple[str, str]] = (),
    progress: Callable[[int], None] | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield title and text, and the language, of the articles of a group. Raises InvalidInput for none.

    Columns that are not used are reported on stderr.
    """
    files = [str(path) for path in paths]
    for remark in check_columns(files, columns, TEXT_FIELDS):
        print(remark, file=sys.stderr)
    groups, without_text = Counter[str](), dict[str, None]()
    for row in read_rows(files, columns):
        text = "\n".join(
            part for part in (row.get("title"), row.get("text")) if isinstance(part, str) and part
        )
        if not text:
            without_text.update(dict.fromkeys(row))
            continue
        declared = row.get("lang")
        lang = detect_language(text[:_LANGUAGE_SAMPLE_CHARS], declared if isinstance(declared, str) else None)
        groups[language_group(lang)] += 1
        if language_group(lang) == group:
            if progress is not None:
                progress(groups[group])
            yield text, lang
    if not groups:
        hint = column_hint(without_text, "text") if without_text else ": there are no rows."
        raise InvalidInput(f"No row has a text or a title{hint}")
    if group not in groups:
        counts = ", ".join(f"{name} ({count})" for name, count in groups.most_common())
        raise InvalidInput(f"group: no article is in {group!r}; the groups of these articles are {counts}.")


def count_terms(
    token_lists: Iterable[Sequence[str]], group: str, settings: FitSettings
) -> tuple[sparse.csr_matrix, tuple[str, ...]]:
    """Occurrences (articles, V) int64, and the V terms. Raises InvalidInput if there are no index terms."""
    counter = CountVectorizer(analyzer=list, dtype=np.int64)
    try:
        counts = counter.fit_transform(token_lists)
    except ValueError as error:
        raise InvalidInput(
            f"There is no article with index terms in group {group!r}; give a corpus of its language."
        ) from error
    columns, vocabulary = _choose_terms(counts, counter.get_feature_names_out(), settings)
    return counts[:, columns], vocabulary


def _choose_terms(
    counts: sparse.csr_matrix, terms: npt.NDArray[Any], settings: FitSettings
) -> tuple[npt.NDArray[np.intp], tuple[str, ...]]:
    """Columns and names of the vocabulary, in order of code points.

    ``max_features`` of CountVectorizer ranks by occurrences, so that few long articles would determine the
    vocabulary, and breaks ties by an unstable sort.
    """
    articles = np.bincount(counts.indices, minlength=counts.shape[1])
    is_usable = (articles >= MIN_ARTICLES) & (articles <= MAX_SHARE * counts.shape[0])
    by_articles = np.lexsort((np.arange(len(articles)), -articles))
    columns = np.sort(by_articles[is_usable[by_articles]][: settings.terms])
    return columns, tuple(str(term) for term in terms[columns])


def _check_corpus_size(shape: tuple[int, int], group: str, settings: FitSettings) -> None:
    articles, terms = shape
    if min(shape) <= settings.components:
        found = f"{articles} articles"
        if articles > settings.components:
            found = f"{terms} terms that {MIN_ARTICLES} of them, but at most {MAX_SHARE:.0%}, have"
        raise InvalidInput(
            f"{found} in group {group!r} are too few for {settings.components} components; give more "
            f"articles or fewer components (with hashed hyperplanes below {FINGERPRINT_BITS})."
        )


def _rotate_hyperplanes(normals: Matrix, projected: Matrix) -> Matrix:
    """Orthonormal normals whose planes are farther from the (n, k) articles (Gong & Lazebnik 2011).

    Alternates between the nearest corner of the cube (signs) of each article and the normals that fit the
    corners best (orthogonal Procrustes problem).
    """
    lengths = np.linalg.norm(projected, axis=1, keepdims=True)
    articles = projected / np.where(lengths > 0, lengths, 1.0)  # signs do not depend on it
    for _ in range(_ROTATION_ITERATIONS):
        corners = np.where(articles @ normals > 0, 1.0, -1.0)
        left, _, right = np.linalg.svd(articles.T @ corners, full_matrices=False)
        normals = left @ right
    return np.asarray(normals)


def initial_hyperplanes(settings: FitSettings) -> Matrix:
    """The (components, 64) normals that no corpus is needed for."""
    normals = hash_signs(f"pca:{j}" for j in range(settings.components))
    if settings.hyperplanes == "hashed":
        return normals
    orthonormal, upper = np.linalg.qr(normals)
    # QR is unique only up to the sign of each column: take the one nearest to the hashed hyperplane.
    return np.asarray(orthonormal * np.sign(np.diag(upper)))


_CONTENTS = (
    "The file contains a vocabulary, the inverse article frequency of each term, and the matrix and offset "
    "that map term weights to 64 sums. It contains no text. "
    "Fingerprints of models with different ids are not comparable."
)


def model_card(model: FeatureModel, file_name: str, size_bytes: int, limits: str) -> str:
    """The Markdown card of a model file; ``limits``: sentences."""
    own_rows = [
        ("Vocabulary", f"{len(model.vocabulary):,} terms"),
        ("Matrix", f"{len(model.vocabulary):,} x {FINGERPRINT_BITS}, float16"),
        *((f"Setting `{name}`", f"`{value}`") for name, value in model.metadata.get("settings", {}).items()),
    ]
    return render_card(model, file_name, size_bytes, own_rows, _CONTENTS, limits)


def render_card(
    model: FeatureModel | FittedModel,
    file_name: str,
    size_bytes: int,
    own_rows: list[tuple[str, str]],
    contents: str,
    limits: str,
) -> str:
    """The card of any model; ``own_rows``: those of its kind, ``contents``: what the file contains."""
    about = dict(model.metadata)
    rows = [
        ("File", f"`{file_name}`, {size_bytes:,} bytes"),
        ("Language group", f"`{model.group}`"),
        ("Model id", f"`{model.id}`"),
        ("Content hash (SHA-256)", f"`{model.content_hash}`"),
        ("Corpus", str(about.get("corpus", "not stated"))),
        ("Licence of the corpus", str(about.get("licence", "not stated"))),
        ("Articles", f"{about.get('articles', 0):,}"),
        ("Period", str(about.get("period", "not stated"))),
        ("Index terms", f"`{model.recipe}`"),
        *own_rows,
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return (
        f"# Feature model `{model.group}`\n\n"
        f"| | |\n| --- | --- |\n{table}\n\n"
        f"{textwrap.fill(contents, 110)}\n\n{textwrap.fill(f'**Limits:** {limits}', 110)}\n"
    )
