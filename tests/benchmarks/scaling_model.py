"""What to expect of many GPUs: ``python -m tests.benchmarks.scaling_model``.

A model of four terms, with the shares that ``scaling.py`` measures. Computing takes
as long as without others. A ring of nodes needs ``2 (n - 1) / n`` times the bytes of
the gradients over each node's link, and each of its steps has a latency. What is sent
while the last micro-batch is still differentiated costs nothing. Within a node the GPUs
exchange first, over a faster network. Stragglers, and networks that are shared with
others, are not in it.
"""

from __future__ import annotations

import dataclasses

from tests.benchmarks.report import make_parser, print_table

EFFICIENCY = {32: 0.97, 16: 0.67}
PARAMETERS = {"base": 60.5e6, "big": 210e6}  # Transformers with 32,000 subwords
GPUS = (8, 64, 512)
GPUS_PER_NODE = 8


@dataclasses.dataclass(frozen=True)
class Cluster:
    """What a cluster and a training step are like.

    Attributes:
      link: bytes per second of each node to the next.
      efficiency: share of ``link`` that transfers reach; measured on two nodes, in 32
        and 16 bits.
      link_in_node: bytes per second of each GPU to its neighbour.
      latency: seconds that a step of the ring takes whatever its size.
      hiding: transfers can be hidden in this share of a micro-batch; measured on them.
      tail: share of the gradients that is ready only at the end: the embedding.
    """

    link: float
    efficiency: float
    link_in_node: float = 100e9
    latency: float = 20e-6
    hiding: float = 0.5
    tail: float = 0.3

    def seconds_to_exchange(self, num_bytes: float, nodes: int, per_node: int) -> float:
        def ring(size: int, bytes_per_second: float) -> float:
            transfer = 2 * (size - 1) / size * num_bytes / bytes_per_second
            return transfer + 2 * (size - 1) * self.latency

        between = ring(nodes, self.efficiency * self.link)
        return between + ring(per_node, self.link_in_node)

    def share_of_possible(
        self,
        num_bytes: float,
        nodes: int,
        per_node: int,
        micro_batch: float,
        iter_size: int,
    ) -> float:
        """Returns the speed as a share of that of as many GPUs without any network.

        Args:
          num_bytes: of the gradients on the wire.
          nodes: machines.
          per_node: GPUs of each.
          micro_batch: seconds that one takes to compute.
          iter_size: micro-batches per update.
        """
        exchange = self.seconds_to_exchange(num_bytes, nodes, per_node)
        hidden = min((1 - self.tail) * exchange, self.hiding * micro_batch)
        computing = iter_size * micro_batch
        return computing / (computing + exchange - hidden)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--size", choices=PARAMETERS, default="base")
    parser.add_argument(
        "--micro_batch", type=float, default=0.1, help="seconds on one GPU"
    )
    parser.add_argument(
        "--gbit", type=float, nargs="+", default=(10, 100), help="link of a node"
    )
    arguments = parser.parse_args()
    lines = []
    for gbit in arguments.gbit:
        for bits, efficiency in EFFICIENCY.items():
            cluster = Cluster(gbit * 1e9 / 8, efficiency)
            for iter_size in (1, 4, 16):
                shares = [
                    cluster.share_of_possible(
                        PARAMETERS[arguments.size] * bits / 8,
                        gpus // GPUS_PER_NODE,
                        GPUS_PER_NODE,
                        arguments.micro_batch,
                        iter_size,
                    )
                    for gpus in GPUS
                ]
                cells = [f"{share:.0%}" for share in shares]
                lines.append([f"{gbit:g}", f"{bits}", f"{iter_size}", *cells])
    print(
        f"Transformer {arguments.size}, {arguments.micro_batch:g} s a micro-batch, "
        f"nodes of {GPUS_PER_NODE} GPUs: share of the speed without a network"
    )
    gpus = [f"{number} GPUs" for number in GPUS]
    print_table(["Gbit/s", "bits", "iter_size", *gpus], lines)


if __name__ == "__main__":
    main()
