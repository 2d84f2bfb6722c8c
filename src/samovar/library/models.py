"""Training and predicting with scikit-learn, as Python operators.

This module's text is the code of `train` and `predict` operators: it is kept in recordings like any other code, and
needs nothing but scikit-learn where it runs.
"""

import hashlib
import pickle

import pyarrow as pa

import samovar as sv

_LOADED = {}


def _estimator(kind, params):
    """An untrained model of scikit-learn; the same every time, also where it draws by chance."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    made = {
        "logistic_regression": (LogisticRegression, {"max_iter": 1000}),
        "linear_regression": (LinearRegression, {}),
        "decision_tree": (DecisionTreeClassifier, {"random_state": 0}),
        "random_forest": (RandomForestClassifier, {"random_state": 0}),
        "random_forest_regression": (RandomForestRegressor, {"random_state": 0}),
        "naive_bayes": (MultinomialNB, {}),
        "nearest_neighbours": (KNeighborsClassifier, {}),
    }
    build, defaults = made[kind]
    return build(**{**defaults, **params})


class Train(sv.Operator):
    """Keeps the rows, and at their end gives one row: the trained model, and how well it fits them."""

    output = "model binary, kind string, label string, features array<string>, rows bigint, score double"
    examples = sv.ListState()

    def __init__(self, kind, features, label, text=None, params=None):
        self.kind = kind
        self.features = list(features)
        self.label = label
        self.text = text
        self.params = dict(params or {})

    def process(self, row, port=0):
        wanted = [self.text] if self.text else self.features
        values = [row[name] for name in wanted]
        if row[self.label] is not None and all(v is not None for v in values):
            self.examples.append((values, row[self.label]))
        return ()

    def finish(self, port=0):
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline

        if not self.examples:
            raise ValueError(
                f"no row has a value in '{self.label}' and in every feature: nothing to train with"
            )
        labels = [label for _, label in self.examples]
        if self.text:
            inputs, first = [str(values[0]) for values, _ in self.examples], TfidfVectorizer()
        else:
            inputs = [
                dict(zip(self.features, map(_plain, values), strict=True)) for values, _ in self.examples
            ]
            first = DictVectorizer(sparse=False)
        model = make_pipeline(first, _estimator(self.kind, self.params))
        model.fit(inputs, [_plain(label) for label in labels])
        score = float(model.score(inputs, [_plain(label) for label in labels]))
        yield {
            "model": pickle.dumps(model),
            "kind": self.kind,
            "label": self.label,
            "features": [self.text] if self.text else self.features,
            "rows": len(labels),
            "score": score,
        }


class Predict(sv.Operator):
    """Port 0: a trained model, one row. Port 1: rows to add a prediction to; they wait until the model has come."""

    output = "*1, prediction double"
    model = sv.ValueState(None)
    waiting = sv.ListState()

    def __init__(self, into="prediction", kind="double"):
        self.into = into
        self.kind = kind

    def process_batch(self, batch, port=0):
        if port == 0:
            if batch.num_rows:
                row = batch.slice(batch.num_rows - 1, 1).to_pylist()[0]
                self.model = (row["model"], row["features"])
                for kept in self.waiting:
                    yield self.predicted(kept)
                self.waiting.clear()
        elif self.model is None:
            self.waiting.append(batch)
        else:
            yield self.predicted(batch)

    def predicted(self, batch):
        body, features = self.model
        model = _loaded(body)
        rows = batch.select(features).to_pylist()
        sound = [i for i, row in enumerate(rows) if all(row[f] is not None for f in features)]
        values = [None] * len(rows)
        if sound:
            if type(model[0]).__name__ == "TfidfVectorizer":
                given = [str(rows[i][features[0]]) for i in sound]
            else:
                given = [{f: _plain(rows[i][f]) for f in features} for i in sound]
            for i, value in zip(sound, model.predict(given).tolist(), strict=True):
                values[i] = str(value) if self.kind == "string" else value
        of = {"double": pa.float64(), "string": pa.string(), "bigint": pa.int64(), "boolean": pa.bool_()}[
            self.kind
        ]
        return batch.append_column(self.into, pa.array(values, of))


def _plain(value):
    """Decimals and the like as floats, texts and numbers as they are."""
    return value if isinstance(value, (str, bool, int, float)) else float(value)


def _loaded(body):
    """A model from its bytes; unpickled once in each process."""
    key = hashlib.sha256(body).digest()
    if key not in _LOADED:
        _LOADED.clear()
        _LOADED[key] = pickle.loads(body)
    return _LOADED[key]
