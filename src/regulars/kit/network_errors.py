"""Why a request to another system failed, as a sentence for people. The name of a Python class says nothing to them."""

import aiohttp


def describe_network_error(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "The host's name could not be resolved."
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "The certificate of the host cannot be trusted."
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"The connection failed: {error.os_error.strerror or 'no reason was given'}."
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError | aiohttp.ClientOSError):
        return "The receiver closed the connection before it answered."
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.ClientPayloadError):
        return "The answer was not HTTP."
    if isinstance(error, TimeoutError):
        return "The answer did not come in time."
    if isinstance(error, OSError) and error.strerror:
        return f"The connection failed: {error.strerror}."
    return "The request could not be made."
