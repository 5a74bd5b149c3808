"""The virtual functions of the extension's two allocators, and which of them were entered."""

import ctypes
import subprocess

#: Each allocator's class, and PyTorch's interface that it implements: whose functions come first in the table.
CLASSES = {"cistern_torch::TorchAllocator": "c10::cuda::CUDACachingAllocator::CUDAAllocator",
           "cistern_torch::TorchPinned": "at::HostAllocator"}


class Verbs:
    """Reads the tables of virtual functions in the loaded extension. `names` is all that a call of PyTorch's can
    reach there; `elsewhere` is the number of functions in PyTorch's own libraries."""

    def __init__(self, extension: str):
        self._library = ctypes.CDLL(extension)
        self._library.cistern_probe_base.restype = ctypes.c_void_p
        base = self._library.cistern_probe_base()
        symbols = self._symbols(extension)
        functions = {base + address: name for name, (address, _, kind) in symbols.items() if kind in "tTwW"}
        self.names, self.elsewhere = {}, 0
        for name, interface in CLASSES.items():
            address, size = symbols[f"vtable for {name}"][0], symbols[f"vtable for {interface}"][1]
            slots = (ctypes.c_void_p * (size // 8)).from_address(base + address)
            for slot in slots[2:]:  # after the offset to the top, and the type
                if slot not in functions:
                    self.elsewhere += 1
                elif "~" not in functions[slot]:
                    self.names[functions[slot]] = slot

    @staticmethod
    def _symbols(extension):
        """name -> (address, size, kind)"""
        listed = subprocess.run(["nm", "-S", "-C", extension], capture_output=True, text=True, check=True)
        rows = (line.split(None, 3) for line in listed.stdout.splitlines())
        return {row[3]: (int(row[0], 16), int(row[1], 16), row[2])
                for row in rows if len(row) == 4 and len(row[1]) == 16}

    def clear(self):
        self._library.cistern_probe_clear()

    def entered(self):
        probe = self._library.cistern_probe_entered
        return {name for name, slot in self.names.items() if probe(ctypes.c_void_p(slot))}
