"""Train a model of TensorFlow on random images to measure speed, in one rank or in many.

This script runs in the image's own Python, under mpirun, horovodrun or alone, and needs only
tensorflow; it uses horovod where it is there. Its options and their defaults, and the lines that it
prints, are those of Horovod's tensorflow_synthetic_benchmark.py. Images have it at /examples and
/mnt under that name too.

TensorFlow 1 computes in a graph, as that script does; TensorFlow 2 eagerly, as Horovod's script
for it. `--eager` and `--graph` say otherwise.
"""

import argparse
import glob
import os
import sys
import timeit
from importlib import util
from typing import Any

import synthetic_lines as lines

CLASSES = 1000
SIDE = 224
HOROVOD, ALONE, AUTO = "horovod", "alone", "auto"


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--model", default="ResNet50", help="small, or a model of tf.keras.applications")
    add("--batch-size", type=int, default=32, help="of each rank")
    lines.add_length(parser)
    joins = (AUTO, HOROVOD, "lightcc", ALONE)
    add("--via", choices=joins, default=AUTO, help="what joins the ranks")
    add("--fp16-allreduce", action="store_true", help="send gradients as float16")
    add("--use-adasum", action="store_true", help="join gradients by Horovod's Adasum")
    add("--eager", action="store_true", help="compute eagerly, with TensorFlow 1 too")
    add("--graph", action="store_true", help="compute in a graph, with TensorFlow 2 too")
    add("--allreduce", action="store_true", help="first sum rank + 1 over all ranks")
    add("--no-cuda", action="store_true", help="train on processors")
    found = parser.parse_args()
    lines.fill_length(found)
    return found


def has_horovod() -> bool:
    """Return whether a Horovod is installed that was compiled for TensorFlow."""
    found = util.find_spec("horovod")
    folders = list(found.submodule_search_locations or []) if found else []
    return any(glob.glob(os.path.join(one, "tensorflow", "mpi_lib*")) for one in folders)


class OneRank:
    """Train in one rank, without anything that joins several."""

    rank, size, local_rank, ranks_here = 0, 1, 0, 1

    def optimizer(self, optimizer: Any) -> Any:
        """Return the optimizer of a graph as it is: there is nobody to agree with."""
        return optimizer

    def tape(self, tape: Any) -> Any:
        """Return the gradients' tape as it is."""
        return tape

    def start_graph(self, session: Any) -> None:
        """Agree on the variables of a graph."""

    def start_eager(self, variables: Any) -> None:
        """Agree on variables."""

    def sum(self, value: float) -> float:
        """Return the sum over all ranks."""
        return value

    def leave(self) -> None:
        """Leave the job."""


class HorovodRanks:
    """Train through Horovod, which finds the other ranks by MPI or by `horovodrun`."""

    def __init__(self, args: argparse.Namespace) -> None:
        import horovod.tensorflow as hvd

        hvd.init()
        self._hvd = hvd
        self.rank, self.size, self.local_rank = hvd.rank(), hvd.size(), hvd.local_rank()
        self.ranks_here = hvd.local_size()
        compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
        self._more = dict({"op": hvd.Adasum} if args.use_adasum else {}, compression=compression)

    def optimizer(self, optimizer: Any) -> Any:
        """Return an optimizer of a graph that averages the gradients of all ranks."""
        return self._hvd.DistributedOptimizer(optimizer, **self._more)

    def tape(self, tape: Any) -> Any:
        """Return a tape that averages the gradients of all ranks."""
        return self._hvd.DistributedGradientTape(tape, **self._more)

    def start_graph(self, session: Any) -> None:
        """Take the variables of rank 0, in a graph."""
        session.run(self._hvd.broadcast_global_variables(0))

    def start_eager(self, variables: Any) -> None:
        """Take the variables of rank 0."""
        self._hvd.broadcast_variables(variables, root_rank=0)

    def sum(self, value: float) -> float:
        """Return the sum over all ranks."""
        import tensorflow as tf

        hvd = self._hvd
        how = {"op": hvd.Sum} if hasattr(hvd, "Sum") else {"average": False}
        with tf.device("/cpu:0"):
            total = hvd.allreduce(tf.constant([value]), name="imagegen.sum", **how)
        if tf.executing_eagerly():
            return float(total.numpy()[0])
        v1 = _v1()
        with v1.Session(config=v1.ConfigProto(device_count={"GPU": 0})) as session:
            return float(session.run(total)[0])

    def leave(self) -> None:
        """Leave the job, when all ranks are done."""
        self._hvd.shutdown()


def _v1() -> Any:
    """Return the interface of TensorFlow 1; releases before 1.13 have no other."""
    import tensorflow as tf

    return getattr(tf.compat, "v1", tf)


def keras_model(name: str) -> Any:
    """Build a model by its name, in capitals or not."""
    import tensorflow as tf

    if name.lower() == "small":
        return _small(tf.keras)
    models = tf.keras.applications
    makers = {one.lower(): getattr(models, one) for one in dir(models) if one[:1].isupper()}
    if name.lower() not in makers:
        known = ", ".join(sorted(makers))
        sys.exit("error: there is no model `{}`; there are: small, {}".format(name, known))
    return makers[name.lower()](weights=None)


def _small(keras: Any) -> Any:
    """Build two convolutions and a classifier, which take seconds on a laptop."""
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Conv2D(16, 7, strides=4, activation="relu", input_shape=(SIDE, SIDE, 3)),
            layers.Conv2D(32, 3, strides=4, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


class Graph:
    """Train in a graph with a session, as TensorFlow 1 does."""

    def __init__(self, args: argparse.Namespace, comm: Any, cuda: bool) -> None:
        import tensorflow as tf

        v1 = _v1()
        model = keras_model(args.model)
        shape = [args.batch_size, *[int(side) for side in model.input_shape[1:]]]
        images = v1.get_variable("images", initializer=v1.random_uniform(shape), trainable=False)
        labels = v1.random_uniform([args.batch_size], 0, CLASSES - 1, dtype=tf.int64)
        scores = model(images, training=True)
        loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(labels, scores))
        optimizer = comm.optimizer(v1.train.GradientDescentOptimizer(0.01))
        self._step = optimizer.minimize(loss, var_list=model.trainable_variables)
        self._session = v1.Session(config=self._settings(v1, comm, cuda))
        self._session.run(v1.global_variables_initializer())
        comm.start_graph(self._session)

    def _settings(self, v1: Any, comm: Any, cuda: bool) -> Any:
        settings = v1.ConfigProto(intra_op_parallelism_threads=threads(comm))
        if cuda:
            settings.gpu_options.allow_growth = True
            settings.gpu_options.visible_device_list = str(comm.local_rank)
        return settings

    def seconds(self, batches: int) -> float:
        """Train on some batches, and return how long it took."""
        return timeit.timeit(lambda: self._session.run(self._step), number=batches)


class Eager:
    """Train eagerly, with a step that is compiled when it first runs, as TensorFlow 2 does."""

    def __init__(self, args: argparse.Namespace, comm: Any) -> None:
        import tensorflow as tf

        self._tf, self._comm, self._first = tf, comm, True
        self._model = keras_model(args.model)
        self._optimizer = tf.keras.optimizers.SGD(0.01)
        shape = [args.batch_size, *self._model.input_shape[1:]]
        self._images = tf.random.uniform(shape)
        self._labels = tf.random.uniform([args.batch_size], 0, CLASSES - 1, dtype=tf.int64)
        self._step = tf.function(self._train)

    def _train(self) -> None:
        tf, model = self._tf, self._model
        with tf.GradientTape() as tape:
            scores = model(self._images, training=True)
            losses = tf.keras.losses.sparse_categorical_crossentropy(self._labels, scores)
            loss = tf.reduce_mean(losses)
        variables = model.trainable_variables
        gradients = self._comm.tape(tape).gradient(loss, variables)
        self._optimizer.apply_gradients(zip(gradients, variables))  # noqa: B905  (Python 3.6)

    def seconds(self, batches: int) -> float:
        """Train on some batches, and return how long it took.

        After the first one all ranks take the variables of rank 0: the optimizer has its own then.
        """
        found = timeit.timeit(self._step, number=1) if self._first else 0.0
        if self._first:
            own = self._optimizer.variables
            self._comm.start_eager(self._model.variables)
            self._comm.start_eager(own() if callable(own) else own)
            batches, self._first = batches - 1, False
        return found + timeit.timeit(self._step, number=batches)


def choose_devices(comm: Any, cuda: bool) -> None:
    """Choose what an eager rank computes on, before anything does."""
    import tensorflow as tf

    if cuda:
        own = tf.config.experimental.list_physical_devices("GPU")[comm.local_rank]
        tf.config.experimental.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)
    elif hasattr(tf.config, "threading"):
        tf.config.threading.set_intra_op_parallelism_threads(threads(comm))


def threads(comm: Any) -> int:
    """Return how many threads compute: a part of the processors, if nobody says how many."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit():
        return int(asked)
    return max(1, len(os.sched_getaffinity(0)) // int(comm.ranks_here))


def sees_gpus() -> bool:
    """Return whether TensorFlow computes on a GPU here."""
    import tensorflow as tf

    if hasattr(tf, "config") and hasattr(tf.config, "experimental"):
        return bool(tf.config.experimental.list_physical_devices("GPU"))
    return bool(tf.test.is_built_with_cuda() and glob.glob("/dev/nvidia[0-9]*"))


def computes_in_graph(args: argparse.Namespace) -> bool:
    """Choose how this process computes, and return whether that is in a graph."""
    import tensorflow as tf

    old = tf.__version__.startswith("1.")
    graph = bool(args.graph or (old and not args.eager))
    if graph and not old:
        _v1().disable_eager_execution()
    if old and not graph:
        _v1().enable_eager_execution()
    return graph


def main() -> None:
    """Join the other ranks, and measure."""
    args = options()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if args.no_cuda:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    graph = computes_in_graph(args)
    cuda = not args.no_cuda and sees_gpus()
    joined = args.via in (HOROVOD, "lightcc") or (args.via == AUTO and has_horovod())
    comm = HorovodRanks(args) if joined else OneRank()
    if not graph:
        choose_devices(comm, cuda)
    if args.allreduce:
        lines.say_sum(comm)
    training = Graph(args, comm, cuda) if graph else Eager(args, comm)
    lines.measure(args, comm, "GPU" if cuda else "CPU", training.seconds)
    comm.leave()


if __name__ == "__main__":
    main()
