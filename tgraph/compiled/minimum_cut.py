"""The minimum cut of a network, from a maximum flow.

Dinic's algorithm: shortest paths first, all of one length at once (E. A. Dinic, "Algorithm for
solution of a problem of maximum flow in networks with power estimation", 1970). For networks as
small as ours it takes less time than importing a library of graphs, which is 50 ms.
"""

from __future__ import annotations

from math import inf


class Network:
    """Vertices from 0 to `count` - 1, and edges that can carry so much.

    >>> network = Network(4)
    >>> for start, end, capacity in ((0, 1, 5), (1, 2, 3), (2, 3, 4)):
    ...     network.connect(start, end, capacity)
    >>> network.cut_off(0, 3)
    [False, False, True, True]
    """

    def __init__(self, count: int) -> None:
        self._edges_of: list[list[int]] = [[] for _ in range(count)]
        # Of each edge; that which leads back stands beside it, at its number with the last bit
        # changed.
        self._ends: list[int] = []
        self._left: list[float] = []

    def connect(self, start: int, end: int, capacity: float) -> None:
        """An edge that carries up to `capacity`: a whole number, or infinity."""
        for where, to, left in ((start, end, capacity), (end, start, 0)):
            self._edges_of[where].append(len(self._ends))
            self._ends.append(to)
            self._left.append(left)

    def cut_off(self, source: int, sink: int) -> list[bool]:
        """Whether each vertex is on the sink's side of a minimum cut.

        Of several minimum cuts it is that nearest to the sink. ValueError where none is finite.
        Called once.
        """
        while True:
            distances = self._distances(sink)
            if distances[source] < 0:
                return [distance >= 0 for distance in distances]
            self._fill(source, sink, distances)

    def _distances(self, sink: int) -> list[int]:
        """How many edges that can carry more lead from each vertex to the sink; -1 for no way."""
        found = [-1] * len(self._edges_of)
        found[sink] = 0
        reached = [sink]
        for vertex in reached:
            for edge in self._edges_of[vertex]:
                start = self._ends[edge]
                if found[start] < 0 and self._left[edge ^ 1]:
                    found[start] = found[vertex] + 1
                    reached.append(start)
        return found

    def _fill(self, source: int, sink: int, distances: list[int]) -> None:
        """Carry as much as can be along the shortest ways."""
        ends, left = self._ends, self._left
        tried = [0] * len(self._edges_of)  # edges of each vertex that lead nowhere any more
        way: list[int] = []
        vertex = source
        while True:
            if vertex == sink:
                vertex = self._carry(way)
            edges, nearer = self._edges_of[vertex], distances[vertex] - 1
            while tried[vertex] < len(edges):
                edge = edges[tried[vertex]]
                if left[edge] and distances[ends[edge]] == nearer:
                    way.append(edge)
                    vertex = ends[edge]
                    break
                tried[vertex] += 1
            else:
                if not way:
                    return
                vertex = ends[way.pop() ^ 1]
                tried[vertex] += 1

    def _carry(self, way: list[int]) -> int:
        """Carry as much as can be along `way`; cuts it where it is full, and gives the vertex."""
        left = self._left
        amount = min([left[edge] for edge in way])
        if amount == inf:
            raise ValueError("every cut is infinite")
        for edge in way:
            left[edge] -= amount
            left[edge ^ 1] += amount
        full = next(at for at, edge in enumerate(way) if not left[edge])
        vertex = self._ends[way[full] ^ 1]
        del way[full:]
        return vertex
