"""ReFrame's view of a machine without a queue, mpiexec from the path; on a cluster use your site's file."""

site_configuration = {
    "systems": [
        {
            "name": "local",
            "descr": "This machine",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "default",
                    "scheduler": "local",
                    "launcher": "mpiexec",
                    "environs": ["plain"],
                }
            ],
        }
    ],
    "environments": [{"name": "plain", "cc": "", "cxx": "", "ftn": ""}],
}
