"""Health check of the image: exit code 0 if the service of the environment's settings is ready."""

from urllib.request import urlopen

from aggregator import config_file, settings
from aggregator.runtime.addresses import service_url

path = config_file.locate(settings.path_variable())
own = settings.load(config=config_file.read(path) if path else None)
urlopen(f"{service_url(own.host, own.port)}/readyz", timeout=5).close()
