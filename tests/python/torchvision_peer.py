"""torchvision, to compare with: tools/setup.sh puts it into a folder of its own, .venv/apart."""

import importlib.util
import pathlib
import sys


def add_torchvision() -> bool:
    """Makes `import torchvision` work, and says whether there is one. Its compiled operators need not fit this torch: without them the
    import fails unless two are declared, and then all that is written in Python works."""
    apart = pathlib.Path(sys.prefix) / "apart"
    if str(apart) not in sys.path:
        sys.path.append(str(apart))
    if importlib.util.find_spec("torchvision") is None:
        return False
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        declare_operators()
    return True


def declare_operators() -> None:
    import torch
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    torch._tandem_torchvision_operators = library  # for as long as torch is loaded
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
