# Python imports this at startup, since `tandem run` puts its folder first on PYTHONPATH. It installs a signal handler
# that dumps the stacks to a file, writes torchrun's error file on an uncaught exception, and then imports the user's
# own sitecustomize, if any.
import os
import sys

STACK_SIGNAL = 50  # kStackSignal of launch/cause/python.h


def register_stack_signal(folder):
    import faulthandler

    def register():
        # Never closed: after a fork the descriptor may belong to another file.
        path = os.path.join(folder, "%d.txt" % os.getpid())
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        faulthandler.register(STACK_SIGNAL, file=file, all_threads=True, chain=False)

    def register_in_child():
        try:
            register()
        except Exception:
            pass

    register()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=register_in_child)


def write_error_file(kind, value, trace):
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    is_rank = os.getsid(0) == os.getpid()
    if not path or not is_rank or not issubclass(kind, Exception):
        return
    import json
    import time
    import traceback

    stack = "".join(traceback.format_exception(kind, value, trace))
    facts = {"py_callstack": stack, "timestamp": str(int(time.time()))}
    message = {"message": {"message": "%s: %s" % (kind.__name__, value), "extraInfo": facts}}
    with open(path, "x") as file:
        json.dump(message, file)


def add_exception_hook():
    previous = sys.excepthook

    def hook(kind, value, trace):
        try:
            write_error_file(kind, value, trace)
        except Exception:
            pass
        previous(kind, value, trace)

    sys.excepthook = hook


def start():
    try:
        add_exception_hook()
        folder = os.environ.get("TANDEM_STACK_DIR")
        if folder:
            register_stack_signal(os.path.abspath(folder))
    except Exception:
        pass


def make_way():
    here = os.path.dirname(__file__)
    sys.path[:] = [folder for folder in sys.path if folder != here]
    sys.modules.pop("sitecustomize", None)


start()
make_way()
import sitecustomize  # the next one on sys.path; `site` ignores an ImportError
